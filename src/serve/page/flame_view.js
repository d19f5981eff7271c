// The flame graph of a map of stacks, which grows while the page is open.

const kFrameHeight = 18;   // with the gap below
const kLetterWidth = 7.3;  // of the font
const kNarrowest = 0.5;    // pixels: narrower frames are left out

// What frames are, by the letters of serve/described_map.h, in the order of the legend.
const kFrameKinds = {
  u: 'user code',
  i: 'inlined function',
  k: 'kernel',
  x: 'no name known',
  t: 'other part of the key',
};

// A colour by what a frame is, as in the pictures of -f flame (output/flame.cc). `a` and `b`, from 0 to 1, choose
// within the range.
function kindColour(kind, a, b) {
  const light = 66 + 8 * b;
  if (kind === 'k') return `hsl(${198 + 20 * a} 66% ${light}%)`;
  if (kind === 'i') return `hsl(${46 + 12 * a} 88% ${light}%)`;
  if (kind === 't') return `hsl(${120 + 30 * a} 30% ${light}%)`;
  if (kind === 'x') return `hsl(0 0% ${light + 8}%)`;
  return `hsl(${14 + 32 * a} 88% ${light}%)`;
}

// By the hash of the name.
function frameColour(name, kind) {
  let hash = 2166136261;
  for (const byte of new TextEncoder().encode(name)) hash = Math.imul(hash ^ byte, 16777619) >>> 0;
  return kindColour(kind, (hash >>> 8 & 255) / 255, (hash >>> 16 & 255) / 255);
}

// ---- The tree

// A frame of the tree. `full`: its name as -f folded has it, where `_[k]` marks kernel code and `_[i]` inlined
// functions. `kind`: a letter.
function makeNode(full, kind, parent) {
  return {
    name: kind === 'k' || kind === 'i' ? full.replace(/_\[[ki]\]$/, '') : full,
    full,
    kind,
    total: 0,
    children: new Map(),  // by `full`
    parent,
  };
}

// Merges stacks, [weight, frame, ...] each with indexes into `frames` and `kinds`, and returns the root of all.
function flameTree(stacks, frames, kinds) {
  const root = makeNode('all', 'x', null);
  for (const [weight, ...indexes] of stacks) {
    let node = root;
    node.total += weight;
    for (const index of indexes) {
      const full = frames[index];
      if (!node.children.has(full)) node.children.set(full, makeNode(full, kinds[index], node));
      node = node.children.get(full);
      node.total += weight;
    }
  }
  return root;
}

// The nodes from the root along `path`, the names of frames, as far as they are there.
function nodesOn(root, path) {
  const nodes = [root];
  for (const full of path) {
    const next = nodes[nodes.length - 1].children.get(full);
    if (!next) break;
    nodes.push(next);
  }
  return nodes;
}

// The names of the frames below, as they stand side by side.
function namesBelow(node) {
  return [...node.children.keys()].sort();
}

// Adds a box for `node` and each frame below that is wide enough: {node, x, width, level, path, isAbove}.
function placeBelow(boxes, node, x, width, level, path) {
  if (width < kNarrowest) return;
  boxes.push({node, x, width, level, path, isAbove: false});
  let left = x;
  for (const full of namesBelow(node)) {
    const child = node.children.get(full);
    const share = width * child.total / node.total;
    placeBelow(boxes, child, left, share, level + 1, [...path, full]);
    left += share;
  }
}

// The boxes of a picture that shows the last of `nodes`: its callers in the full width, itself, and what is below.
function placedBoxes(nodes, width) {
  const path = nodes.slice(1).map(node => node.full);
  const boxes =
      nodes.slice(0, -1).map((node, level) => ({node, x: 0, width, level, path: path.slice(0, level), isAbove: true}));
  placeBelow(boxes, nodes[nodes.length - 1], 0, width, nodes.length - 1, path);
  return boxes;
}

// The weight of the frames that `pattern` finds; what is below one that was found is not counted again.
function foundWeight(node, pattern) {
  if (node.parent && pattern.test(node.name)) return node.total;
  let weight = 0;
  for (const child of node.children.values()) weight += foundWeight(child, pattern);
  return weight;
}

function isSamePath(a, b) {
  return a.length === b.length && a.every((full, index) => full === b[index]);
}

// As much of a name as fits a box; empty if that is nothing.
function labelOf(name, width) {
  const letters = Math.floor((width - 8) / kLetterWidth);
  if (letters <= 2) return '';
  return name.length > letters ? name.slice(0, letters - 1) + '…' : name;
}

// What -f folded prints.
function foldedStacks(stacks, frames) {
  return stacks.map(([weight, ...indexes]) => indexes.map(index => frames[index]).join(';') + ' ' + weight + '\n')
      .join('');
}

// ---- The view

class FlameView extends View {
  constructor(map) {
    super(map, 'wide');
    this.path = [];          // the names of the frames that were gone into
    this.focused = [];       // of the frame that the arrow keys have reached
    this.isFlipped = false;  // the root is at the bottom
    this.search = make('input', {
      type: 'search',
      placeholder: 'search frames, by regular expression',
      ariaLabel: 'search frames',
      oninput: () => this.refresh(),
    });
    this.showAll =
        make('button', {type: 'button', textContent: 'Show all', disabled: true, onclick: () => this.zoom([])});
    const flip = makeButton('Flip', 'the root at the top or at the bottom', () => {
      this.isFlipped = !this.isFlipped;
      this.refresh();
    });
    const folded = makeButton('Folded', 'save as folded stacks', () => this.saveFolded());
    this.details = make('div', {className: 'details', ariaLive: 'polite'});
    this.picture = this.makePicture();
    this.legend = make('div', {className: 'legend'});
    this.tools.append(this.search, this.showAll, flip, folded, ...makeSaveButtons(this));
    this.content.append(this.legend, this.details, make('div', {className: 'flame'}, this.picture));
  }

  makePicture() {
    const picture = draw('svg', {
      tabindex: 0,
      role: 'img',
      'aria-label': 'flame graph of ' + this.map.name +
          '; arrow keys go from frame to frame, Enter goes into one, Escape shows all',
    });
    picture.addEventListener('keydown', event => this.takeKey(event));
    picture.addEventListener('click', event => {
      const box = this.boxAt(event);
      if (box) this.zoom(box.path);
    });
    picture.addEventListener('mousemove', event => {
      const box = this.boxAt(event);
      if (box) this.tell(box.node, null);
    });
    return picture;
  }

  foldedText() {
    return foldedStacks(this.map.stacks, this.map.frames);
  }

  saveFolded() {
    save(fileName(this.map) + '.folded', 'text/plain', this.foldedText());
  }

  show() {
    this.root = flameTree(this.map.stacks, this.map.frames, this.map.kinds);
    const nodes = nodesOn(this.root, this.path);
    this.path = nodes.slice(1).map(node => node.full);
    this.showAll.disabled = this.path.length === 0;
    this.boxes = placedBoxes(nodes, widthOf(this.picture, 800));
    const levels = this.boxes.reduce((deepest, box) => Math.max(deepest, box.level), 0) + 1;
    const pattern = patternOf(this.search.value);
    this.picture.setAttribute('height', levels * kFrameHeight + 2);
    this.picture.replaceChildren(...this.boxes.map((box, index) => this.drawBox(box, index, levels, pattern)));
    this.showLegend();
    this.tell(this.focusedNode(), pattern);
  }

  showLegend() {
    const present = Object.keys(kFrameKinds).filter(kind => this.map.kinds.includes(kind));
    this.legend.replaceChildren(...present.flatMap(kind => {
      const sample = make('span', {className: 'colour'});
      sample.style.background = kindColour(kind, 0.5, 0.5);
      return [make('span', {}, sample, kFrameKinds[kind] + ' ')];
    }));
  }

  drawBox(box, index, levels, pattern) {
    const {node, x, width} = box;
    const y = (this.isFlipped ? levels - 1 - box.level : box.level) * kFrameHeight;
    const isFound = pattern !== null && pattern.test(node.name);
    const isFocused = isSamePath(box.path, this.focused) && document.activeElement === this.picture;
    const rectangle = draw('rect', {
      x: x.toFixed(2),
      y,
      width: Math.max(width - 0.5, 0.5).toFixed(2),
      height: kFrameHeight - 1,
      rx: 2,
      fill: isFound ? '#c04ad0' : frameColour(node.name, node.kind),
      stroke: isFocused ? 'currentColor' : 'none',
      'stroke-width': 2,
    });
    const group = draw('g', {'data-index': index, opacity: box.isAbove ? 0.5 : 1}, rectangle);
    const label = labelOf(node.name, width);
    if (label) {
      const text = draw('text', {x: (x + 4).toFixed(2), y: y + 13, fill: kDarkInk, 'data-dark': ''}, label);
      text.style.fill = kDarkInk;  // the style sheet has another one for text in pictures
      group.append(text);
    }
    return group;
  }

  // Shows the weight of a frame, and of all that `pattern` finds if there is one.
  tell(node, pattern) {
    const noun = this.map.sampled ? ' samples' : this.map.unit ? ' ' + this.map.unit : '';
    const shown = weight => `${grouped(weight)}${noun} (${(weight / (this.root.total || 1) * 100).toFixed(2)}%)`;
    const found = pattern ? ', found: ' + shown(foundWeight(this.root, pattern)) : '';
    this.details.textContent = node.name + ': ' + shown(node.total) + found;
  }

  boxAt(event) {
    const group = event.target.closest('g');
    return group ? this.boxes[group.dataset.index] : null;
  }

  zoom(path) {
    this.path = path;
    this.focused = path;
    this.isStale = true;
    this.show();
  }

  focusedNode() {
    const nodes = nodesOn(this.root, this.focused);
    return nodes[nodes.length - 1];
  }

  takeKey(event) {
    if (event.key === 'Enter') {
      this.zoom(this.focused);
    } else if (event.key === 'Escape') {
      this.zoom([]);
    } else {
      const path = this.pathAfter(event.key);
      if (!path) return;
      this.focused = path;
    }
    event.preventDefault();
    this.show();
  }

  // Where an arrow key leads: to the heaviest frame below, to the caller, or to a neighbour. null: nowhere.
  pathAfter(key) {
    const node = this.focusedNode();
    const [deeper, back] = this.isFlipped ? ['ArrowUp', 'ArrowDown'] : ['ArrowDown', 'ArrowUp'];
    if (key === back) return this.focused.slice(0, -1);
    if (key === deeper) {
      const heaviest = [...node.children.values()].sort((a, b) => b.total - a.total)[0];
      return heaviest ? [...this.focused, heaviest.full] : null;
    }
    const step = {ArrowRight: 1, ArrowLeft: -1}[key];
    if (!step || !node.parent) return null;
    const siblings = namesBelow(node.parent);
    const sibling = siblings[siblings.indexOf(node.full) + step];
    return sibling === undefined ? null : [...this.focused.slice(0, -1), sibling];
  }
}

// The flame graph of the page of a run, which grows while the page is open. See page_script.h.
#pragma once

#include <string_view>

namespace espy::serve {

constexpr std::string_view kPageFlame = R"(
// A colour by what a frame is and by its name, as in the pictures of -f flame.
function frameColour(name, kind) {
  let hash = 2166136261;
  for (const byte of new TextEncoder().encode(name)) hash = Math.imul(hash ^ byte, 16777619) >>> 0;
  const a = (hash >>> 8 & 255) / 255, b = (hash >>> 16 & 255) / 255, light = 66 + 8 * b;
  if (kind === 'k') return `hsl(${198 + 20 * a} 66% ${light}%)`;
  if (kind === 'i') return `hsl(${46 + 12 * a} 88% ${light}%)`;
  if (name.startsWith('[')) return `hsl(0 0% ${light + 8}%)`;
  return `hsl(${14 + 32 * a} 88% ${light}%)`;
}

class FlameView extends View {
  constructor(map) {
    super(map, true);
    this.search = make('input', {type: 'search', placeholder: 'search frames, by regular expression', 
                                 ariaLabel: 'search frames'});
    this.search.oninput = () => { this.isStale = true; schedule(); };
    this.out = make('button', {type: 'button', textContent: 'Show all', disabled: true,
                               onclick: () => this.zoom([])});
    this.flip = make('button', {type: 'button', textContent: 'Flip', title: 'the root at the top or at the bottom',
                                
                                onclick: () => { this.isFlipped = !this.isFlipped; this.isStale = true; schedule(); }});
    this.folded = make('button', {type: 'button', textContent: 'Folded', title: 'save as folded stacks',
                                  onclick: () => this.saveFolded()});
    this.svg = draw('svg', {tabindex: 0, role: 'img', 'aria-label': 'flame graph of ' + map.name +
      '; arrow keys go from frame to frame, Enter goes into one, Escape shows all'});
    this.picture = () => this.svg;
    this.details = make('div', {className: 'details', ariaLive: 'polite'});
    this.tools.append(this.search, this.out, this.flip, this.folded, ...saveButtons(this));
    this.content.append(this.details, this.svg);
    this.path = [];     // the names of the frames that were gone into
    this.focused = [];  // of the frame that the arrow keys have reached
    this.svg.addEventListener('keydown', event => this.key(event));
    this.svg.addEventListener('click', event => { const box = this.boxAt(event); if (box) this.zoom(box.path); });
    this.svg.addEventListener('mousemove', event => { const box = this.boxAt(event); if (box) this.tell(box.node); });
  }
  saveFolded() { save(fileName(this.map) + '.folded', 'text/plain', this.foldedText()); }
  foldedText() {
    return this.map.stacks.map(([weight, ...frames]) =>
      frames.map(index => this.map.frames[index]).join(';') + ' ' + weight + '\n').join('');
  }
  tree() {
    const root = {name: 'all', kind: '', total: 0, children: new Map()};
    for (const [weight, ...frames] of this.map.stacks) {
      let node = root;
      node.total += weight;
      for (const index of frames) {
        const full = this.map.frames[index], suffix = /_\[([ki])\]$/.exec(full);
        let child = node.children.get(full);
        if (!child) {
          child = {name: suffix ? full.slice(0, -4) : full, full, kind: suffix ? suffix[1] : '', total: 0,
                   children: new Map(), parent: node};
          node.children.set(full, child);
        }
        child.total += weight;
        node = child;
      }
    }
    return root;
  }
  find(root, path) {
    const nodes = [root];
    for (const name of path) {
      const next = nodes[nodes.length - 1].children.get(name);
      if (!next) break;
      nodes.push(next);
    }
    return nodes;
  }
  show() {
    this.root = this.tree();
    const width = this.svg.getBoundingClientRect().width || 800, above = this.find(this.root, this.path);
    this.path = above.slice(1).map(node => node.full);
    this.out.disabled = this.path.length === 0;
    this.boxes = [];
    above.slice(0, -1).forEach((node, level) =>
      this.boxes.push({node, x: 0, width, level, path: this.path.slice(0, level), isAbove: true}));
    this.place(above[above.length - 1], 0, width, above.length - 1, this.path);
    const levels = Math.max(...this.boxes.map(box => box.level)) + 1;
    this.svg.setAttribute('height', levels * 18 + 2);
    let wanted = null;
    try { wanted = this.search.value ? new RegExp(this.search.value, 'i') : null; } catch (error) { wanted = null; }
    const dark = '#211f1c';
    this.svg.replaceChildren(...this.boxes.map((box, index) => {
      box.y = (this.isFlipped ? box.level : levels - 1 - box.level) * 18;
      const isFocused = box.path.join(';') === this.focused.join(';') && document.activeElement === this.svg;
      const isFound = wanted && wanted.test(box.node.name);
      const group = draw('g', {'data-index': index, opacity: box.isAbove ? 0.5 : 1},
        draw('rect', {x: box.x.toFixed(2), y: box.y, width: Math.max(box.width - 0.5, 0.5).toFixed(2), height: 17,
                      rx: 2, fill: isFound ? '#c04ad0' : frameColour(box.node.name, box.node.kind),
                      stroke: isFocused ? 'currentColor' : 'none', 'stroke-width': 2}));
      const letters = Math.floor((box.width - 8) / 7.3);
      const place = {x: (box.x + 4).toFixed(2), y: box.y + 13, fill: dark, 'data-dark': ''};
      if (letters > 2) group.append(draw('text', place,
        box.node.name.length > letters ? box.node.name.slice(0, letters - 1) + '…' : box.node.name));
      return group;
    }));
    this.svg.querySelectorAll('text').forEach(text => { text.style.fill = dark; });
    const focused = this.find(this.root, this.focused);
    this.tell(focused[focused.length - 1], wanted);
  }
  place(node, x, width, level, path) {
    if (width < 0.5) return;
    this.boxes.push({node, x, width, level, path});
    for (const full of [...node.children.keys()].sort()) {
      const child = node.children.get(full), part = width * child.total / node.total;
      this.place(child, x, part, level + 1, [...path, full]);
      x += part;
    }
  }
  tell(node, wanted) {
    const share = part => (part / (this.root.total || 1) * 100).toFixed(2) + ' %';
    let text = `${node.name}: ${grouped(node.total)} (${share(node.total)})`;
    if (wanted) {
      let found = 0;
      const visit = each => {
        if (each.parent && wanted.test(each.name)) found += each.total; else each.children.forEach(visit);
      };
      visit(this.root);
      text += `, found: ${grouped(found)} (${share(found)})`;
    }
    this.details.textContent = text;
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
  key(event) {
    const nodes = this.find(this.root, this.focused), node = nodes[nodes.length - 1];
    const siblings = node.parent ? [...node.parent.children.keys()].sort() : [];
    const at = siblings.indexOf(node.full);
    const largest = [...node.children.values()].sort((a, b) => b.total - a.total)[0];
    const beside = step => { this.focused = [...this.focused.slice(0, -1), siblings[at + step]]; };
    const [deeper, back] = this.isFlipped ? ['ArrowDown', 'ArrowUp'] : ['ArrowUp', 'ArrowDown'];
    if (event.key === 'Enter') this.zoom(this.focused);
    else if (event.key === 'Escape') this.zoom([]);
    else if (event.key === deeper && largest) this.focused = [...this.focused, largest.full];
    else if (event.key === back) this.focused = this.focused.slice(0, -1);
    else if (event.key === 'ArrowRight' && at >= 0 && at + 1 < siblings.length) beside(1);
    else if (event.key === 'ArrowLeft' && at > 0) beside(-1);
    else return;
    event.preventDefault();
    this.show();
  }
}
)";

}  // namespace espy::serve

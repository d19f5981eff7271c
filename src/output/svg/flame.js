// The script of a flame graph as an SVG file: zooming, searching, and what the mouse points at.
//
// Frames are nested <svg> elements with places in percent: they clip their labels and follow the window by themselves.
// Several graphs may be in one HTML page, so flame.svg puts this into a function.

const kNear = 1e-3;          // percent: what places differ by when they are equal
const kNarrowestSeen = 0.5;  // pixels: narrower frames are left out
const kNarrowestEdge = 5;    // and these have no edges
const kNarrowestLabel = 22;
const kBottom = 16;  // below the frames

// A frame: `x` and `width` in percent of all, `depth` from the root.
function frameOf(element) {
  const label = element.querySelector('text');
  return {
    element,
    label,
    name: label.textContent,
    title: element.querySelector('title').textContent,
    depth: Number(element.dataset.d),
    x: parseFloat(element.getAttribute('x')),
    width: parseFloat(element.getAttribute('width')),
  };
}

function isWithin(inner, outer) {
  return inner.x > outer.x - kNear && inner.x + inner.width < outer.x + outer.width + kNear;
}

// Where a frame is while `shown` is as wide as the picture, in percent; null if it is outside. Callers of `shown` are
// as wide.
function placeOf(frame, shown) {
  if (frame.depth >= shown.depth && isWithin(frame, shown)) {
    const scale = 100 / shown.width;
    return {x: (frame.x - shown.x) * scale, width: frame.width * scale, isAbove: false};
  }
  if (frame.depth < shown.depth && isWithin(shown, frame)) return {x: 0, width: 100, isAbove: true};
  return null;
}

// The same for a picture of that width; null for frames that are too narrow as well.
function seenPlace(frame, shown, pixels) {
  const place = placeOf(frame, shown);
  return place && place.width / 100 * pixels >= kNarrowestSeen ? place : null;
}

// The regular expression that was typed. What is none is searched for as it is.
function patternOf(text) {
  try {
    return new RegExp(text, 'i');
  } catch (error) {
    return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i');
  }
}

// The frames that `pattern` finds, and their share of all in percent. Frames stand parent before child: what lies in
// one that was found already is not counted again.
function findFrames(frames, pattern) {
  const found = frames.filter(frame => pattern.test(frame.name));
  const outermost = [];
  for (const frame of found) {
    const isCounted = outermost.some(other => other.depth < frame.depth && isWithin(frame, other));
    if (!isCounted) outermost.push(frame);
  }
  return {found, share: outermost.reduce((sum, frame) => sum + frame.width, 0)};
}

function foundText({found, share}) {
  return found.length + (found.length === 1 ? ' frame, ' : ' frames, ') + share.toFixed(2) + '% of all';
}

class FlameGraph {
  constructor(svg) {
    this.svg = svg;
    this.rowHeight = Number(svg.dataset.row);
    this.top = Number(svg.dataset.top);
    this.frames = Array.from(svg.querySelectorAll('.f'), frameOf);
    this.byElement = new Map(this.frames.map(frame => [frame.element, frame]));
    this.all = this.frames[0];
    this.shown = this.all;
    this.isFlipped = false;  // the root is at the bottom
    this.details = svg.querySelector('.details');
    this.matched = svg.querySelector('.matched');
    this.reset = svg.querySelector('.reset');
    this.input = svg.querySelector('input');
  }

  // The picture is as high as the frames that are seen.
  draw() {
    const pixels = this.svg.getBoundingClientRect().width;
    const places = this.frames.map(frame => seenPlace(frame, this.shown, pixels));
    const levels =
        1 + this.frames.reduce((deepest, {depth}, index) => places[index] ? Math.max(deepest, depth) : deepest, 0);
    this.frames.forEach((frame, index) => this.drawFrame(frame, places[index], levels, pixels));
    this.svg.setAttribute('height', this.top + levels * this.rowHeight + kBottom);
    this.reset.style.display = this.shown === this.all ? 'none' : '';
  }

  drawFrame(frame, place, levels, pixels) {
    const {element, label, depth} = frame;
    element.style.display = place ? '' : 'none';
    element.classList.toggle('above', place !== null && place.isAbove);
    if (!place) return;
    const level = this.isFlipped ? levels - 1 - depth : depth;
    const width = place.width / 100 * pixels;
    element.setAttribute('x', place.x + '%');
    element.setAttribute('width', place.width + '%');
    element.setAttribute('y', this.top + level * this.rowHeight);
    element.classList.toggle('wide', width > kNarrowestEdge);
    label.style.display = width < kNarrowestLabel ? 'none' : 'inline';
  }

  zoom(frame) {
    this.shown = frame;
    this.draw();
  }

  flip() {
    this.isFlipped = !this.isFlipped;
    this.draw();
  }

  search() {
    const result = this.input.value ? findFrames(this.frames, patternOf(this.input.value)) : null;
    const found = new Set(result ? result.found : []);
    for (const frame of this.frames) frame.element.classList.toggle('found', found.has(frame));
    this.matched.textContent = result ? foundText(result) : '';
  }

  frameAt(event) {
    const element = event.target.closest && event.target.closest('.f');
    return element ? this.byElement.get(element) : null;
  }

  tell(frame) {
    this.details.textContent = frame ? frame.title.replace('\n', '   ') : this.details.dataset.hint;
  }

  takeKey(event) {
    if (event.key === 'Escape') {
      this.goBack();
    } else if (event.target !== this.input && (event.key === '/' || (event.key === 'f' && event.ctrlKey))) {
      event.preventDefault();
      this.input.focus();
    }
  }

  // Ends the search, or shows all if there is none.
  goBack() {
    if (this.input.value) {
      this.input.value = '';
      this.search();
    } else {
      this.zoom(this.all);
    }
    this.input.blur();
  }

  listen() {
    this.svg.addEventListener('click', event => {
      const frame = this.frameAt(event);
      if (frame) this.zoom(frame);
    });
    this.svg.addEventListener('mouseover', event => this.tell(this.frameAt(event)));
    this.svg.querySelector('.flip').addEventListener('click', () => this.flip());
    this.reset.addEventListener('click', () => this.zoom(this.all));
    this.input.addEventListener('input', () => this.search());
    window.addEventListener('resize', () => this.draw());
    document.addEventListener('keydown', event => this.takeKey(event));
  }
}

function start() {
  const script = document.currentScript;
  const graph = new FlameGraph((script && script.closest('svg')) || document.documentElement);
  graph.listen();
  graph.svg.classList.add('live');
  graph.draw();
}

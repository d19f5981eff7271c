// Elements, and what is saved of them.
//
// Names of maps, keys, frames and lines of the log come from traced programs, and may hold anything. They become text
// nodes, properties or attributes; no text is ever parsed as markup.

const kBarColour = '#e0813f';
const kDarkInk = '#211f1c';  // on coloured boxes, with either theme

function pick(selector) {
  return document.querySelector(selector);
}

// An HTML element. `properties`: those of the element, otherwise attributes.
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) {
      element[name] = value;
    } else {
      element.setAttribute(name, value);
    }
  }
  element.append(...children);
  return element;
}

// An SVG element.
function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function makeButton(text, title, onclick) {
  return make('button', {type: 'button', textContent: text, title, onclick});
}

// The terms and descriptions of a <dl>. `rows`: [name, value, class].
function makePairs(rows) {
  return rows.flatMap(
      ([name, value,
        className = '']) => [make('dt', {textContent: name}), make('dd', {textContent: value, className})]);
}

// The width that an element has on the page; `otherwise` while it has none.
function widthOf(element, otherwise) {
  return element.getBoundingClientRect().width || otherwise;
}

// ---- Saving

function save(name, type, text) {
  const link = make('a', {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function saveJson(name, value) {
  save(name + '.json', 'application/json', JSON.stringify(value, null, 1) + '\n');
}

// A picture must show the same elsewhere, so what the style gives it is written into it.
function saveSvg(name, svg) {
  const copy = svg.cloneNode(true);
  const style = getComputedStyle(svg);
  const box = svg.getBoundingClientRect();
  const attributes =
      {width: box.width, height: box.height, 'font-family': 'monospace', 'font-size': '12', color: style.color};
  for (const [attribute, value] of Object.entries(attributes)) copy.setAttribute(attribute, value);
  copy.querySelectorAll('text').forEach(text => text.setAttribute('fill', style.color));
  copy.querySelectorAll('[data-dark]').forEach(text => text.setAttribute('fill', kDarkInk));
  copy.prepend(draw('rect', {width: '100%', height: '100%', fill: getComputedStyle(document.body).backgroundColor}));
  save(name + '.svg', 'image/svg+xml', new XMLSerializer().serializeToString(copy));
}

// The buttons of a view that save its map and, if it has one, its picture.
function makeSaveButtons(view) {
  const out = [];
  if (view.picture) {
    out.push(makeButton('SVG', 'save this picture as SVG', () => saveSvg(fileName(view.map), view.picture)));
  }
  out.push(makeButton('JSON', 'save this map as JSON', () => saveJson(fileName(view.map), view.map)));
  return out;
}

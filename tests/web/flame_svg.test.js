// The script of flame graphs as SVG files.
'use strict';

const test = require('node:test');
const assert = require('node:assert');
const {Browser, Element, shape, kHostile, kFlame} = require('./browser.js');

function element(tag, attributes = {}, ...children) {
  const out = new Element(tag);
  for (const [name, value] of Object.entries(attributes)) out.setAttribute(name, value);
  out.append(...children);
  return out;
}

// As output/flame.cc writes it. `frames`: [name, depth, x, width].
function open(frames, height = 400) {
  const browser = new Browser();
  const use = browser.load(kFlame);
  const boxes = frames.map(
      ([name, depth, x, width]) => element(
          'svg', {class: 'f', 'data-d': depth, x: x + '%', width: width + '%', y: 0},
          element('title', {}, name + '\n1 (1.00%)'), element('rect'), element('text', {}, name)));
  const script = element('script');
  const picture = element(
      'svg', {'data-row': 18, 'data-top': 84}, element('text', {class: 'details', 'data-hint': 'hint'}),
      element('text', {class: 'matched'}), element('text', {class: 'flip'}), element('text', {class: 'reset'}),
      element('input'), ...boxes, script);
  Object.assign(picture, {width: 1000, height});
  browser.document.body.append(picture);
  browser.document.currentScript = script;
  use('start')();
  return {browser, use, picture, boxes, pick: selector => picture.querySelector(selector)};
}

const kFrames = [['all', 0, 0, 100], ['main', 1, 0, 60], ['read', 2, 0, 2], ['write', 2, 2, 58], ['idle', 1, 60, 40]];

test('frames outside of the one that is shown have no place', () => {
  const use = new Browser().load(kFlame);
  const frame = (depth, x, width) => ({depth, x, width});
  const placeOf = use('placeOf');
  const shown = frame(1, 60, 40);
  assert.deepStrictEqual(placeOf(frame(2, 70, 10), shown), {x: 25, width: 25, isAbove: false});
  assert.deepStrictEqual(placeOf(frame(1, 60, 40), shown), {x: 0, width: 100, isAbove: false});
  assert.deepStrictEqual(placeOf(frame(0, 0, 100), shown), {x: 0, width: 100, isAbove: true});
  assert.strictEqual(placeOf(frame(1, 0, 60), shown), null);
  assert.strictEqual(placeOf(frame(2, 59, 2), shown), null);
});

test('what lies in a frame that was found is not counted again', () => {
  const use = new Browser().load(kFlame);
  const frames = kFrames.map(([name, depth, x, width]) => ({name, depth, x, width}));
  const find = text => use('foundText')(use('findFrames')(frames, use('patternOf')(text)));
  assert.strictEqual(find('main|read'), '2 frames, 60.00% of all');
  assert.strictEqual(find('IDLE'), '1 frame, 40.00% of all');
  assert.strictEqual(find('nothing'), '0 frames, 0.00% of all');
  assert.strictEqual(find('read(('), '0 frames, 0.00% of all');
});

test('an unfinished pattern is searched for as it is', () => {
  const patternOf = new Browser().load(kFlame)('patternOf');
  assert.ok(patternOf('a(').test('XA(b'));
  assert.ok(patternOf('[*+').test('[*+'));
  assert.ok(patternOf('a.c').test('abc'));
});

test('a click goes into a frame, Escape back', () => {
  const {browser, picture, boxes, pick} = open(kFrames);
  assert.match(picture.className, /live/);
  assert.strictEqual(pick('.reset').style.display, 'none');
  assert.deepStrictEqual(boxes.map(box => box.getAttribute('y')), ['84', '102', '120', '120', '102']);
  boxes[4].querySelector('rect').dispatch('click');
  assert.deepStrictEqual(boxes.map(box => box.style.display), ['', 'none', 'none', 'none', '']);
  assert.deepStrictEqual([boxes[4].getAttribute('x'), boxes[4].getAttribute('width')], ['0%', '100%']);
  assert.match(boxes[0].className, /above/);
  assert.strictEqual(pick('.reset').style.display, '');
  browser.document.dispatch('keydown', {key: 'Escape'});
  assert.deepStrictEqual(boxes.map(box => box.style.display), ['', '', '', '', '']);
  assert.strictEqual(boxes[4].getAttribute('x'), '60%');
});

test('narrow frames have neither labels nor edges', () => {
  const {boxes} = open([...kFrames, ['thin', 2, 60, 0.3]]);
  const labels = boxes.map(box => box.querySelector('text').style.display);
  assert.deepStrictEqual(labels, ['inline', 'inline', 'none', 'inline', 'inline', 'none']);
  assert.deepStrictEqual(boxes.map(box => / wide/.test(box.className)), [true, true, true, true, true, false]);
});

test('the root is at the top, and at the bottom after a flip', () => {
  const {picture, boxes, pick} = open(kFrames, 2000);
  assert.strictEqual(boxes[0].getAttribute('y'), '84');
  assert.strictEqual(picture.getAttribute('height'), String(84 + 3 * 18 + 16));
  pick('.flip').dispatch('click');
  assert.strictEqual(boxes[0].getAttribute('y'), '120');
});

test('frames below half a pixel are left out, and the picture is as high as the others', () => {
  const {picture, boxes, pick} = open([...kFrames, ['sliver', 3, 60, 0.04], ['below', 4, 60, 0.04]]);
  assert.deepStrictEqual(boxes.map(box => box.style.display), ['', '', '', '', '', 'none', 'none']);
  assert.strictEqual(picture.getAttribute('height'), String(84 + 3 * 18 + 16));
  boxes[4].querySelector('rect').dispatch('click');
  assert.deepStrictEqual(boxes.slice(4).map(box => box.style.display), ['', '', '']);
  assert.strictEqual(picture.getAttribute('height'), String(84 + 5 * 18 + 16));
});

test('the search marks frames until Escape', () => {
  const {browser, boxes, pick} = open(kFrames);
  pick('input').value = 'write';
  pick('input').dispatch('input');
  const found = () => boxes.filter(box => /found/.test(box.className)).length;
  assert.strictEqual(pick('.matched').textContent, '1 frame, 58.00% of all');
  assert.strictEqual(found(), 1);
  browser.document.dispatch('keydown', {key: 'Escape'});
  assert.strictEqual(pick('input').value, '');
  assert.strictEqual(pick('.matched').textContent, '');
  assert.strictEqual(found(), 0);
});

test('a picture without frames is drawn', () => {
  const {picture} = open([]);
  assert.match(picture.className, /live/);
});

test('names make no markup', () => {
  const draw = name => {
    const {picture, boxes, pick} = open([['all', 0, 0, 100], [name, 1, 0, 50]]);
    boxes[1].dispatch('mouseover');
    assert.strictEqual(pick('.details').textContent, name + '   1 (1.00%)');
    picture.dispatch('mouseover');
    assert.strictEqual(pick('.details').textContent, 'hint');
    pick('input').value = name;
    pick('input').dispatch('input');
    return shape(picture);
  };
  for (const name of kHostile) assert.strictEqual(draw(name), draw('name'));
});

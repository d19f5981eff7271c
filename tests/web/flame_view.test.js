// The flame graph of the page.
'use strict';

const test = require('node:test');
const assert = require('node:assert');
const {Browser, shape, kHostile, kPage} = require('./browser.js');

const kFrames = ['main', 'read', 'vfs_read_[k]', 'write', 'small_[i]'];
const kKinds = 'uukui';
const kStacks = [[6, 0, 1, 2], [3, 0, 3], [1, 0, 1, 4], [2, 3]];

function mapOf(stacks, frames, name = '@s', kinds = kKinds) {
  return {
    name,
    kind: 'count_t',
    scalar: false,
    labels: ['ustack'],
    help: '',
    keys: stacks.length,
    stacks,
    frames,
    kinds
  };
}

function makeView(map) {
  const use = new Browser().load(kPage);
  const view = new (use('FlameView'))(map);
  view.picture.width = 1200;
  view.show();
  return view;
}

test('stacks with equal callers are merged', () => {
  const use = new Browser().load(kPage);
  const root = use('flameTree')(kStacks, kFrames, kKinds);
  const text = node => node.name + node.kind + ' ' + node.total + ' ' + [...node.children.values()].map(text).join(',');
  assert.strictEqual(text(root), 'allx 12 mainu 10 readu 7 vfs_readk 6 ,smalli 1 ,writeu 3 ,writeu 2 ');
  assert.strictEqual(use('flameTree')([], [], '').total, 0);
  const names = use('nodesOn')(root, ['main', 'read', 'gone', 'vfs_read_[k]']).map(node => node.name);
  assert.deepStrictEqual(names, ['all', 'main', 'read']);
});

test('frames are as wide as their share, sorted by name, and narrow ones are left out', () => {
  const use = new Browser().load(kPage);
  const root = use('flameTree')(kStacks, kFrames, kKinds);
  const boxes = (path, width) =>
      use('placedBoxes')(use('nodesOn')(root, path), width)
          .map(({node, x, width, level}) => `${node.name} ${level} ${x}+${Number(width.toFixed(3))}`);
  assert.deepStrictEqual(boxes([], 1200), [
    'all 0 0+1200',
    'main 1 0+1000',
    'read 2 0+700',
    'small 3 0+100',
    'vfs_read 3 100+600',
    'write 2 700+300',
    'write 1 1000+200',
  ]);
  assert.deepStrictEqual(boxes(['main', 'read'], 700), [
    'all 0 0+700',
    'main 1 0+700',
    'read 2 0+700',
    'small 3 0+100',
    'vfs_read 3 100+600',
  ]);
  assert.ok(!boxes([], 3).some(box => box.startsWith('small')));
});

test('what is below a frame that was found is not counted again', () => {
  const use = new Browser().load(kPage);
  const root = use('flameTree')(kStacks, kFrames, kKinds);
  assert.strictEqual(use('foundWeight')(root, /read/), 7);
  assert.strictEqual(use('foundWeight')(root, /write/), 5);
  assert.strictEqual(use('foundWeight')(root, /all/), 1);  // small, not the root
});

test('labels are cut to their boxes', () => {
  const labelOf = new Browser().load(kPage)('labelOf');
  assert.strictEqual(labelOf('function', 20), '');
  assert.strictEqual(labelOf('function', 45), 'func…');
  assert.strictEqual(labelOf('function', 100), 'function');
});

test('colours tell the kernel, inlined functions and unknown names apart', () => {
  const frameColour = new Browser().load(kPage)('frameColour');
  const hue = colour => Number(/hsl\(([\d.]+)/.exec(colour)[1]);
  assert.ok(hue(frameColour('f', 'k')) >= 198 && hue(frameColour('f', 'i')) >= 46);
  assert.ok(hue(frameColour('f', 'u')) >= 14 && hue(frameColour('f', 'u')) <= 46);
  assert.match(frameColour('[libc.so]', 'x'), /^hsl\(0 0%/);
  assert.strictEqual(frameColour('ä', 'u'), frameColour('ä', 'u'));
});

test('folded stacks are those of -f folded', () => {
  const view = makeView(mapOf(kStacks, kFrames));
  assert.strictEqual(view.foldedText(), 'main;read;vfs_read_[k] 6\nmain;write 3\nmain;read;small_[i] 1\nwrite 2\n');
});

test('a click goes into a frame, and Show all back', () => {
  const view = makeView(mapOf(kStacks, kFrames));
  const group = name => view.picture.children.find(each => each.querySelector('text')?.textContent === name);
  assert.strictEqual(view.details.textContent, 'all: 12 (100.00%)');
  group('read').children[0].dispatch('mousemove');
  assert.strictEqual(view.details.textContent, 'read: 7 (58.33%)');
  group('read').children[0].dispatch('click');
  assert.deepStrictEqual(view.path, ['main', 'read']);
  assert.strictEqual(view.showAll.disabled, false);
  assert.strictEqual(group('all').getAttribute('opacity'), '0.5');
  view.showAll.dispatch('click');
  assert.deepStrictEqual(view.path, []);
  assert.strictEqual(view.showAll.disabled, true);
});

test('the root is at the top, and the colours that are there are named', () => {
  const view = makeView(mapOf(kStacks, kFrames));
  const top = () => view.picture.children[0].children[0].getAttribute('y');
  assert.strictEqual(top(), '0');
  view.isFlipped = true;
  view.show();
  assert.strictEqual(top(), '54');
  assert.strictEqual(view.legend.textContent, 'user code inlined function kernel ');
});

test('the search shows the share of what it finds', () => {
  const view = makeView(mapOf(kStacks, kFrames));
  view.search.value = 'WRITE';
  view.show();
  assert.strictEqual(view.details.textContent, 'all: 12 (100.00%), found: 5 (41.67%)');
  const fills = view.picture.querySelectorAll('rect').map(each => each.getAttribute('fill'));
  assert.strictEqual(fills.filter(fill => fill === '#c04ad0').length, 2);
});

test('arrow keys go from frame to frame', () => {
  const view = makeView(mapOf(kStacks, kFrames));
  const press = (...keys) => {
    for (const key of keys) view.picture.dispatch('keydown', {key});
    return view.focused.join(';');
  };
  assert.strictEqual(press('ArrowDown'), 'main');
  assert.strictEqual(press('ArrowDown', 'ArrowDown'), 'main;read;vfs_read_[k]');
  assert.strictEqual(press('ArrowRight'), 'main;read;vfs_read_[k]');
  assert.strictEqual(press('ArrowLeft'), 'main;read;small_[i]');
  assert.strictEqual(press('ArrowUp'), 'main;read');
  assert.strictEqual(press('ArrowRight'), 'main;write');
  assert.strictEqual(press('x'), 'main;write');
  press('Enter');
  assert.deepStrictEqual(view.path, ['main', 'write']);
  assert.strictEqual(press('Escape'), '');
  assert.deepStrictEqual(view.path, []);
  view.isFlipped = true;
  assert.strictEqual(press('ArrowUp'), 'main');
});

test('names make no markup', () => {
  for (const name of kHostile) {
    const frames = [name, 'f' + name, name + '_[k]'];
    const hostile = makeView(mapOf([[4, 0, 1, 2]], frames, name, 'uuk'));
    const harmless = makeView(mapOf([[4, 0, 1, 2]], ['abcd', 'fabcd', 'abcd_[k]'], '@a', 'uuk'));
    if (name) assert.strictEqual(shape(hostile.panel), shape(harmless.panel));
    hostile.tell(hostile.boxes[1].node, null);
    assert.strictEqual(hostile.details.textContent, name + ': 4 (100.00%)');
  }
});

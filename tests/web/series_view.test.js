// The line chart of time series.
'use strict';

const test = require('node:test');
const assert = require('node:assert');
const {Browser, shape, kHostile, kPage} = require('./browser.js');

const use = new Browser().load(kPage);

// A series with an interval of a second. `values`: null for an interval without one.
function series(...values) {
  return values.map(
      (value, second) => ({interval_start: `2026-11-26 21:50:${String(second).padStart(2, '0')}.000000000`, value}));
}

function mapOf(entries, properties = {}) {
  const scalar = entries.length === 1 && entries[0][0].length === 0;
  const labels = scalar ? [] : ['comm'];
  return {name: '@t', kind: 'tseries_t', scalar, labels, help: '', keys: entries.length, entries, ...properties};
}

function makeView(map) {
  const view = new (use('SeriesView'))(map);
  view.picture.width = 672;  // 600 between the axes
  view.take(map, 1);
  view.show();
  return view;
}

test('times are those of the machine where espy runs', () => {
  const seriesClock = use('seriesClock');
  const seriesTime = use('seriesTime');
  assert.strictEqual(seriesClock(seriesTime('2026-11-26 21:50:57.000000000')), '21:50:57');
  assert.strictEqual(seriesClock(seriesTime('2026-11-26 21:50:57.250000000')), '21:50:57.250');
  assert.strictEqual(seriesTime('2026-11-26 21:50:57.250000000') - seriesTime('2026-11-26 21:50:57.000000000'), 250);
});

test('ticks are round, and reach to both ends', () => {
  const axisTicks = use('axisTicks');
  assert.deepStrictEqual(axisTicks(0, 100), [0, 50, 100]);
  assert.deepStrictEqual(axisTicks(0, 19), [0, 5, 10, 15, 20]);
  assert.deepStrictEqual(axisTicks(-7, 3), [-10, -5, 0, 5]);
  for (const [low, high] of [[0, 0], [5, 5], [-1e18, 1e18], [0, 18446744073709551615], [0, 1]]) {
    const ticks = axisTicks(low, high);
    assert.ok(ticks.length >= 2 && ticks.length <= 8, ticks.join());
    assert.ok(ticks[0] <= low && ticks[ticks.length - 1] >= high, ticks.join());
  }
});

test('intervals without a value are gaps', () => {
  const parts = use('seriesParts')([1, 2, null, null, 3, null, 4, 5].map(value => ({value})));
  assert.deepStrictEqual(parts.map(part => part.map(({value}) => value)), [[1, 2], [3], [4, 5]]);
});

test('a series is a line with axes', () => {
  const view = makeView(mapOf([[[], series(0, 100, null, 50)]]));
  const lines = view.picture.querySelectorAll('polyline').map(each => each.getAttribute('points'));
  assert.deepStrictEqual(lines, ['64.0,206.0 264.0,6.0']);
  assert.strictEqual(view.picture.querySelectorAll('circle').length, 1);
  const texts = view.picture.querySelectorAll('text').map(each => each.textContent);
  assert.deepStrictEqual(texts, ['0', '50', '100', '21:50:00', '21:50:03']);
  view.tell(260);
  assert.strictEqual(view.details.textContent, '21:50:01  100');
  view.tell(470);
  assert.strictEqual(view.details.textContent, '21:50:02  nothing');
  assert.strictEqual(view.legend.children.length, 0);
});

test('of many keys the largest have lines', () => {
  const entries = Array.from({length: 20}, (_, index) => [['k' + index], series(index, 1)]);
  const view = makeView(mapOf(entries));
  assert.strictEqual(view.picture.querySelectorAll('polyline').length, 8);
  assert.strictEqual(view.legend.children[0].textContent, 'k19: 1');
  assert.strictEqual(view.note.textContent, '12 more keys, with smaller values or left out by the filter');
  view.filter.value = 'K0';
  view.show();
  assert.strictEqual(view.legend.children.map(each => each.textContent).join(), 'k0: 1');
});

test('a series without values, or without intervals, is drawn', () => {
  assert.strictEqual(makeView(mapOf([])).picture.children.length, 0);
  assert.strictEqual(makeView(mapOf([[[], []]])).picture.querySelectorAll('polyline').length, 0);
  assert.strictEqual(makeView(mapOf([[[], series(null, null)]])).picture.querySelectorAll('polyline').length, 0);
});

test('names make no markup', () => {
  const draw = name => makeView(mapOf([[[name], series(1, 2)], [['other'], series(1, 1)]], {name, help: name}));
  const harmless = draw('name');
  for (const name of kHostile) {
    const hostile = draw(name);
    assert.strictEqual(shape(hostile.panel), shape(harmless.panel));
    assert.strictEqual(hostile.legend.children[0].textContent, use('visible')(name) + ': 2');
  }
});

// Numbers, tables, histograms and the log.
'use strict';

const test = require('node:test');
const assert = require('node:assert');
const {Browser, shape, kHostile, kPage} = require('./browser.js');

function mapOf(properties) {
  return {name: '@x', kind: 'count_t', scalar: false, labels: ['key'], help: '', keys: 1, entries: [], ...properties};
}

test('a rate is known after half a second, and is that of the last seconds', () => {
  const Rate = new Browser().load(kPage)('Rate');
  const rate = new Rate();
  assert.strictEqual(rate.text(), '');
  rate.add(0, 0);
  rate.add(0.2, 100);
  assert.strictEqual(rate.text(), '');
  rate.add(1, 100);
  assert.strictEqual(rate.text(), '+100/s');
  for (let time = 2; time <= 10; ++time) rate.add(time, 100 + 2500 * (time - 1));
  assert.strictEqual(rate.text(), '+2.50k/s');
  for (let time = 11; time <= 20; ++time) rate.add(time, 5);
  assert.strictEqual(rate.text(), '');
  rate.add(21, '3');  // cleared
  rate.add(22, '13');
  assert.strictEqual(rate.text(), '+10/s');
  assert.strictEqual(rate.textOf({kind: 'count_t'}), '+10/s');
  assert.strictEqual(rate.textOf({kind: 'int'}), '');
});

test('averages and extremes have no rate', () => {
  const use = new Browser().load(kPage);
  const rates = kind => {
    const map = value => mapOf({kind, entries: [[['a'], value]]});
    const view = new (use('TableView'))(map(1));
    view.take(map(1), 1);
    view.take(map(101), 2);
    view.show();
    return view.rowOf(['a']).rateText.textContent;
  };
  assert.deepStrictEqual(['count_t', 'sum_t', 'int'].map(rates), ['+100/s', '+100/s', '+100/s']);
  assert.deepStrictEqual(['avg_t', 'min_t', 'max_t'].map(rates), ['', '', '']);
});

test('a trend goes through the lowest and the highest value', () => {
  const trendPoints = new Browser().load(kPage)('trendPoints');
  assert.strictEqual(trendPoints([[0, 1], [5, 3], [10, 2]], 100), '0.0,37.0 50.0,3.0 100.0,20.0');
  assert.strictEqual(trendPoints([[0, 1], [1, 1]], 100), '');
  assert.strictEqual(trendPoints([[0, 1]], 100), '');
  assert.strictEqual(trendPoints([], 100), '');
});

test('a number is shown with its rate, a statistic with what it is made of', () => {
  const use = new Browser().load(kPage);
  const show = value => {
    const kind = value && value.count ? 'stats_t' : 'int';
    const map = mapOf({kind, scalar: true, labels: [], entries: value === undefined ? [] : [[[], value]]});
    const view = new (use('NumberView'))(map);
    view.take(map, 1);
    view.show();
    return [view.number.textContent, view.rateText.textContent];
  };
  assert.deepStrictEqual(show(undefined), ['–', '']);
  assert.deepStrictEqual(show(0), ['0', '']);
  assert.deepStrictEqual(show(1234), ['1,234', '']);
  assert.deepStrictEqual(show('text'), ['text', '']);
  assert.deepStrictEqual(show({count: 1000, average: 5, total: 5000}), ['5', 'average of 1,000, total 5,000']);
});

test('entries are sorted as numbers, then as texts, and equal ones stay in place', () => {
  const sortEntries = new Browser().load(kPage)('sortEntries');
  const entries = [[['b', '10'], 1], [['a', '9'], 3], [['c', '9'], 2]];
  const sorted = (column, isDown) => {
    const out = [...entries];
    sortEntries(out, [{of: ([, value]) => value}], column, isDown);
    return out.map(([key]) => key[0]).join('');
  };
  assert.strictEqual(sorted(0, false), 'abc');
  assert.strictEqual(sorted(0, true), 'cba');
  assert.strictEqual(sorted(1, false), 'acb');
  assert.strictEqual(sorted(1, true), 'bac');
  assert.strictEqual(sorted(2, true), 'acb');
});

test('a filter looks into all parts of a key, in any case', () => {
  const entriesWith = new Browser().load(kPage)('entriesWith');
  const entries = [[['cat', '/etc'], 1], [['Dog', '/usr'], 2]];
  assert.deepStrictEqual(entriesWith(entries, ''), entries);
  assert.deepStrictEqual(entriesWith(entries, 'dOG'), [entries[1]]);
  assert.deepStrictEqual(entriesWith(entries, 't /e'), [entries[0]]);
  assert.deepStrictEqual(entriesWith(entries, '<'), []);
});

test('a table has the largest first, keeps its rows, and tells how many are left out', () => {
  const browser = new Browser();
  const use = browser.load(kPage);
  const map = mapOf({keys: 700, entries: [[['a'], 1], [['b'], 4]]});
  const view = new (use('TableView'))(map);
  view.take(map, 1);
  view.show();
  const cells = () => view.tableBody.children.map(row => row.children.map(cell => cell.textContent).join('|'));
  assert.deepStrictEqual(cells(), ['b|4||', 'a|1||']);
  assert.deepStrictEqual(view.tableBody.children.map(row => row.children[2].children[0].style.width), ['100%', '25%']);
  assert.strictEqual(view.note.textContent, '700 keys, of which the largest 2 are here');
  const [b, a] = view.tableBody.children;
  view.take(mapOf({keys: 2, entries: [[['b'], 4], [['a'], 9]]}), 2);
  view.show();
  assert.deepStrictEqual(cells(), ['a|9||+8/s', 'b|4||']);
  assert.ok(view.tableBody.children[0] === a && view.tableBody.children[1] === b);
  assert.strictEqual(view.note.textContent, '2 keys');
  view.heads[0].dispatch('click');
  view.show();
  assert.strictEqual(view.heads[0].parentElement.getAttribute('aria-sort'), 'ascending');
  assert.strictEqual(view.heads[1].parentElement.getAttribute('aria-sort'), 'none');
});

test('the columns of a table are those of its values', () => {
  const use = new Browser().load(kPage);
  const table = (kind, ...entries) => {
    const map = mapOf({kind, entries: entries.map((entry, index) => [['k' + index], ...entry])});
    const view = new (use('TableView'))(map);
    view.take(map, 1);
    view.show();
    return [
      view.heads.map(head => head.textContent).join(),
      ...view.tableBody.children.map(row => row.children.slice(0, -2).map(cell => cell.textContent).join()),
    ];
  };
  assert.deepStrictEqual(table('avg_t', [5], [7]), ['key,average', 'k1,7', 'k0,5']);
  assert.deepStrictEqual(
      table('stats_t', [{count: 3, average: 5, total: 15}], [{count: 1, average: 9000, total: 9000}]),
      ['key,count,average,total', 'k1,1,9,000,9,000', 'k0,3,5,15']);
  assert.deepStrictEqual(
      table('tuple', [[1, 'two', [3, 'four']], '(1, two, (3, four))']), ['key,value', 'k0,(1, two, (3, four))']);
});

test('keys that cannot be seen are shown', () => {
  const use = new Browser().load(kPage);
  const map = mapOf({entries: [['', 1], ['a\nb\tc', 2], ['\u001b[2J', 3], ['plain', 4]].map(([k, v]) => [[k], v])});
  const view = new (use('TableView'))(map);
  view.take(map, 1);
  view.show();
  const cells = view.tableBody.children.map(row => row.children[0]);
  assert.deepStrictEqual(cells.map(cell => cell.textContent), ['plain', '\\u{1b}[2J', 'a\\nb\\tc', '""']);
  assert.deepStrictEqual(cells.map(cell => cell.className), ['', 'odd', 'odd', 'odd']);
});

test('a panel has the kind and the unit of its map, and that of a scratch map is folded', () => {
  const use = new Browser().load(kPage);
  const panel = properties => {
    const map = mapOf(properties);
    const view = new (use('TableView'))(map);
    view.take(map, 1);
    return [view.kind.textContent, view.body.hidden];
  };
  assert.deepStrictEqual(panel({}), ['count', false]);
  assert.deepStrictEqual(panel({kind: 'avg_t', unit: 'nanoseconds'}), ['average, in nanoseconds', false]);
  assert.deepStrictEqual(panel({kind: 'int', scratch: true}), ['between two events: number', true]);
});

test('a history of buckets has what each second added', () => {
  const BucketHistory = new Browser().load(kPage)('BucketHistory');
  const history = new BucketHistory();
  const buckets = (...counts) => counts.map((count, index) => ({min: index, max: index, count}));
  history.add(1, buckets(5, 0));
  history.add(1, buckets(6, 0));
  history.add(1, buckets(7, 1));
  history.add(2, buckets(7, 1));
  history.add(3, buckets(0, 4));  // the map was cleared
  const columns = history.since(0).map(({second, counts}) => [second, Object.fromEntries(counts)]);
  assert.deepStrictEqual(columns, [[1, {0: 2, 1: 1}], [2, {}], [3, {1: 3}]]);
  assert.deepStrictEqual(history.since(3).length, 1);
  for (let second = 4; second < 2000; ++second) history.add(second, buckets(second));
  assert.strictEqual(history.columns.length, 600);
});

test('a histogram is bars, or a heat map', () => {
  const use = new Browser().load(kPage);
  const map = count =>
      mapOf({scalar: true, labels: [], entries: [[[], [{min: 0, max: 0, count}, {min: 1, max: 1, count: 2}]]]});
  const view = new (use('HistogramView'))(map(1));
  view.take(map(1), 1);
  view.show();
  assert.deepStrictEqual(view.picture.querySelectorAll('text').map(each => each.textContent), ['0', '1', '1', '2']);
  assert.strictEqual(view.note.textContent, '3 values in all');
  view.mode.dispatch('click');
  view.take(map(7), 2);
  view.show();
  assert.deepStrictEqual(view.picture.querySelectorAll('title').map(each => each.textContent), ['0: 6 at 00:02']);
  assert.strictEqual(view.span.hidden, false);
  assert.match(view.legend.textContent, /^values a second: 1 2 6 since this page was opened at 00:01$/);
});

test('the log has the lines that the filter lets through', () => {
  const use = new Browser().load(kPage);
  const log = new (use('LogView'))();
  const texts = () => log.list.children.map(line => line.textContent);
  log.show();
  assert.ok(log.panel.hidden);
  use('state').lines.push([7, 'printf', 'one'], [8, 'errorf', 'TWO']);
  log.show();
  assert.deepStrictEqual(texts(), ['one', 'TWO']);
  assert.deepStrictEqual(log.list.children.map(line => line.className), ['printf', 'errorf']);
  assert.strictEqual(log.note.textContent, '2 lines; 7 earlier ones are not kept');
  log.filter.value = 'tw';
  log.filter.dispatch('input');
  log.show();
  assert.deepStrictEqual(texts(), ['TWO']);
  log.filter.value = '(';
  log.filter.dispatch('input');
  log.show();
  assert.deepStrictEqual(texts(), ['one', 'TWO']);
});

test('names make no markup', () => {
  const visible = new Browser().load(kPage)('visible');
  const draw = names => {
    const browser = new Browser();
    const use = browser.load(kPage);
    const [first] = names;
    const table = mapOf({name: first, help: first, labels: [first], entries: names.map((name, i) => [[name], i])});
    const bucket = {min: 1, max: 1, count: 3};
    const histogram =
        mapOf({name: first, help: first, labels: [first], entries: names.map(name => [[name], [bucket]])});
    const number = mapOf({name: first, help: first, scalar: true, labels: [], entries: [[[], first]]});
    const views =
        [new (use('TableView'))(table), new (use('HistogramView'))(histogram), new (use('NumberView'))(number)];
    [table, histogram, number].forEach((map, index) => {
      views[index].take(map, 1);
      views[index].show();
    });
    const log = new (use('LogView'))();
    use('state').lines.push(...names.map((name, i) => [i, 'printf', name]));
    log.show();
    return [...views, log];
  };
  for (const name of kHostile) {
    const names = [name, ...kHostile.filter(each => each !== name)];
    const hostile = draw(names);
    const harmless = draw(names.map((each, index) => 'name' + index));
    assert.deepStrictEqual(hostile.map(view => shape(view.panel)), harmless.map(view => shape(view.panel)));
    assert.deepStrictEqual(hostile[3].list.children.map(line => line.textContent), names);
    assert.deepStrictEqual(
        hostile[0].tableBody.children.map(row => row.children[0].textContent).sort(), names.map(visible).sort());
    assert.strictEqual(hostile[0].panel.querySelector('h2').textContent, visible(name));
  }
});

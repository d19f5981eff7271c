// The state of the page: messages, views, the head and the margin.
'use strict';

const test = require('node:test');
const assert = require('node:assert');
const {Browser, Element, shape, kHostile, kPage} = require('./browser.js');

function mapOf(name, properties = {}) {
  return {name, kind: 'count_t', scalar: true, labels: [], help: '', keys: 1, entries: [[[], 1]], ...properties};
}

function messageOf(properties = {}) {
  return {
    script: 'a.bt',
    version: '0.1.0',
    elapsed: 1,
    ended: false,
    viewers: 1,
    cpu_seconds: 0.5,
    cpu_share: 0.01,
    losses: {hits: 1000},
    cost: {},
    log: [],
    maps: [],
    ...properties,
  };
}

// The page with the elements that it needs, once it has connected.
function open() {
  const browser = new Browser();
  for (const tag of ['main', 'h1', 'aside']) browser.document.body.append(new Element(tag));
  for (const name
           of ['state', 'elapsed', 'losses', 'cost', 'programs', 'pause', 'theme', 'save', 'badge', 'contents']) {
    browser.document.body.append(Object.assign(new Element('div'), {className: name}));
  }
  for (const name of ['numbers', 'scratch']) {
    browser.document.querySelector('main').append(Object.assign(new Element('div'), {className: name}));
  }
  const use = browser.load(kPage);
  use('start')();
  const [stream] = browser.streams;
  return {
    browser,
    use,
    stream,
    send(message) {
      stream.onmessage({data: JSON.stringify(message)});
      browser.wait();
    },
    text: selector => browser.document.querySelector(selector).textContent,
    panels: () => browser.document.querySelector('main').querySelectorAll('section').map(each => each.ariaLabel),
  };
}

test('messages are merged', () => {
  const use = new Browser().load(kPage);
  const state = use('state');
  const merge = use('merge');
  merge(state, messageOf({maps: [mapOf('@a'), mapOf('@b')], log: [[0, 'printf', 'x'], [1, 'printf', 'y']]}));
  merge(
      state,
      messageOf({maps: [mapOf('@b', {keys: 7})], log: [[0, 'printf', 'x'], [1, 'printf', 'y'], [2, 'printf', 'z']]}));
  assert.deepStrictEqual([...state.maps].map(([name, map]) => [name, map.keys]), [['@a', 1], ['@b', 7]]);
  assert.strictEqual(state.lines.map(line => line[2]).join(''), 'xyz');
  assert.strictEqual(use('lastLine')(state), 2);
  const many = Array.from({length: 6000}, (_, i) => [i + 3, 'printf', '']);
  merge(state, messageOf({log: many, ended: true}));
  assert.strictEqual(state.lines.length, 5000);
  assert.strictEqual(use('lastLine')(state), 6002);
  assert.ok(state.isEnded);
});

test('a run that began later is another one', () => {
  const page = open();
  page.send(messageOf({elapsed: 10, maps: [mapOf('@a')]}));
  page.send(messageOf({elapsed: 11}));
  assert.strictEqual(page.browser.reloads, 0);
  page.send(messageOf({elapsed: 1, maps: [mapOf('@z')]}));
  assert.strictEqual(page.browser.reloads, 1);
  assert.ok(!page.use('state').maps.has('@z'));
});

test('each map has a panel before the log, which changes with the shape of the map', () => {
  const page = open();
  page.send(messageOf({
    maps: [mapOf('@a'), mapOf('@t', {scalar: false, labels: ['comm']}), mapOf('@h', {kind: 'hist_t', entries: []})]
  }));
  assert.deepStrictEqual(page.panels(), ['@a', '@t', '@h', 'log']);
  const kinds = () => [...page.use('state').views.values()].map(view => view.constructor.name).join();
  assert.strictEqual(kinds(), 'NumberView,TableView,HistogramView');
  page.send(messageOf({maps: [mapOf('@t', {scalar: false, labels: ['ustack'], stacks: [], frames: [], kinds: ''})]}));
  assert.deepStrictEqual(page.panels(), ['@a', '@t', '@h', 'log']);
  assert.strictEqual(kinds(), 'NumberView,FlameView,HistogramView');
});

test('the margin has what was lost, and what the run costs', () => {
  const use = new Browser().load(kPage);
  assert.deepStrictEqual(use('lossRows')({hits: 5, missed: 0}), [['nothing', 'exact', 'exact']]);
  assert.deepStrictEqual(use('lossRows')({missed: 1234, skipped_probes: 2, truncated_strings: 0}), [
    ['missed runs', '1,234', 'lost'],
    ['events that no program saw: counts are too low', '', 'meaning'],
    ['skipped probes', '2', 'lost'],
    ['probes that could not be attached', '', 'meaning'],
  ]);
  assert.deepStrictEqual(use('lossRows')({reasons: ['f was replaced']}), [['f was replaced', '', 'meaning']]);
  assert.deepStrictEqual(use('lossBadge')({missed: 0, reasons: []}), ['exact', 'exact']);
  assert.deepStrictEqual(use('lossBadge')({missed: 1234}), ['1,234 missed runs', 'lost']);
  assert.deepStrictEqual(
      use('lossBadge')({missed: 1, stopped_loops: 2, reasons: ['x']}), ['1 missed runs, and 2 more', 'lost']);
  assert.deepStrictEqual(use('lossBadge')({reasons: ['x']}), ['not exact', 'lost']);
  const cost = {cpus: 0.5, map_bytes: 4096, tracer_bytes: 2097152};
  assert.deepStrictEqual(
      use('costRows')(messageOf({cost})).map(([, value]) => value),
      ['1,000', '50.0%', '4 KiB', '1.00%', '0.5 s', '2.0 MiB', 1, '0.1.0']);
  assert.strictEqual(use('costRows')(messageOf())[1][1], '0.00%');
  assert.deepStrictEqual(
      use('programRows')([['kprobe:f', 0.02, 1500, 12345.6], ['end', 0, null, 0]]),
      [['kprobe:f', '2.00%, 1,500 ns, 12.3k/s'], ['end', '0.00%, 0/s']]);
});

test('maps in the order of the script, numbers first; more than a screen of them have a list', () => {
  const page = open();
  const table = name => mapOf(name, {scalar: false, labels: ['comm']});
  page.send(messageOf({maps: [{...table('@s'), scratch: true}, table('@z'), mapOf('@n'), table('@a')]}));
  assert.deepStrictEqual(page.panels(), ['@n', '@z', '@a', '@s', 'log']);
  const contents = page.browser.document.querySelector('.contents');
  assert.ok(contents.hidden);
  page.send(messageOf({elapsed: 2, maps: ['@1', '@2', '@3'].map(table)}));
  assert.ok(!contents.hidden);
  assert.strictEqual(contents.children.map(each => each.textContent).join(), '@s,@z,@n,@a,@1,@2,@3');
});

test('the connection and the end are told', () => {
  const word = new Browser().load(kPage)('connectionWord');
  assert.deepStrictEqual(word({isEnded: true, isConnected: false, isPaused: true}), ['ended', '']);
  assert.deepStrictEqual(word({isEnded: false, isConnected: false, isPaused: true}), ['disconnected', 'gone']);
  assert.deepStrictEqual(word({isEnded: false, isConnected: true, isPaused: true}), ['paused', '']);
  const page = open();
  assert.strictEqual(page.stream.url, 'events?token=x');
  page.stream.onopen();
  assert.strictEqual(page.text('.state'), 'live');
  page.stream.onerror();
  assert.strictEqual(page.text('.state'), 'disconnected');
  page.stream.onopen();
  page.send(messageOf({ended: true}));
  assert.ok(page.stream.isClosed);
  assert.strictEqual(page.text('.state'), 'ended');
});

test('a page that is paused takes messages and draws them later', () => {
  const page = open();
  const number = () => page.use('state').views.get('@a').number.textContent;
  page.send(messageOf({maps: [mapOf('@a')]}));
  page.browser.document.querySelector('.pause').dispatch('click');
  page.send(messageOf({elapsed: 2, maps: [mapOf('@a', {entries: [[[], 2]]})]}));
  assert.strictEqual(number(), '1');
  page.browser.document.dispatch('keydown', {key: 'p', target: new Element('BODY')});
  page.browser.wait();
  assert.strictEqual(number(), '2');
});

test('keys are those of the page unless somebody types', () => {
  const page = open();
  const press = (key, tag, more) => page.browser.document.dispatch('keydown', {key, target: new Element(tag), ...more});
  press('p', 'INPUT');
  press('p', 'BODY', {ctrlKey: true});
  assert.ok(!page.use('state').isPaused);
  press('p', 'BODY');
  assert.ok(page.use('state').isPaused);
  assert.strictEqual(page.browser.root.dataset.theme, 'light');
  press('t', 'BODY');
  assert.strictEqual(page.browser.root.dataset.theme, 'dark');
});

test('names make no markup', () => {
  const draw = name => {
    const page = open();
    const maps = [mapOf(name), mapOf(name + 't', {scalar: false, labels: [name], entries: [[[name], 1]]})];
    const cost = {programs: [[name, 0.1, 5, 1]]};
    page.send(messageOf({script: name, version: name, maps, log: [[0, name, name]], cost}));
    assert.strictEqual(page.text('h1'), name);
    assert.strictEqual(page.browser.document.title, name + ' – espy');
    assert.strictEqual(page.browser.document.querySelector('.programs').children[0].textContent, name);
    assert.strictEqual(page.browser.document.querySelector('li').textContent, name);
    return shape(page.browser.document);
  };
  for (const name of kHostile) assert.strictEqual(draw(name), draw('name'));
});

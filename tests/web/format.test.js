// Texts for numbers, times and names.
'use strict';

const test = require('node:test');
const assert = require('node:assert');
const {Browser, kPage} = require('./browser.js');

const load = new Browser().load(kPage);
const use = name => load(name);

// Checks rows of [argument, result].
function check(name, rows) {
  for (const [argument, expected] of rows) {
    assert.strictEqual(use(name)(argument), expected, `${name}(${JSON.stringify(argument)})`);
  }
}

test('numbers have commas, and no more digits than can be read', () => {
  check('grouped', [
    [0, '0'],
    [999, '999'],
    [1000, '1,000'],
    [1234567, '1,234,567'],
    [-1234567, '-1,234,567'],
    ['18446744073709551615', '18,446,744,073,709,551,615'],
    [1.23456, '1.23'],
  ]);
  check('short', [
    [0, '0'],
    [999, '999'],
    [12.345, '12.3'],
    [1000, '1.00k'],
    [1234567, '1.23M'],
    [-5e9, '-5.00G'],
    [1e24, '1.00e+6E'],
  ]);
});

test('values of maps are texts', () => {
  check('isNumber', [[1, true], ['-12', true], ['1x', false], ['', false], [null, false], [[], false]]);
  check('valueText', [
    [[[], 1234], '1,234'],
    [[[], '1234'], '1,234'],
    [[[], 'a'], 'a'],
    [[[], null], 'null'],
    [[[], [1, [2]], '(1, (2))'], '(1, (2))'],
    [[[], ''], '""'],
  ]);
  check('visible', [
    ['plain ä 漢', 'plain ä 漢'],
    ['', '""'],
    ['a\nb\r\t', 'a\\nb\\r\\t'],
    ['\u0000\u001b\u009b\u202e\ufeff', '\\u{0}\\u{1b}\\u{9b}\\u{202e}\\u{feff}'],
  ]);
  assert.strictEqual(use('keyText')(['a', '', 'b\n']), 'a, "", b\\n');
});

test('shares, sizes and times', () => {
  check('percent', [[0, '0.00%'], [0.0123, '1.23%'], [0.1, '10.0%'], [2.5, '250.0%']]);
  check('byteSize', [[0, '0 KiB'], [1, '1 KiB'], [1048575, '1024 KiB'], [1048576, '1.0 MiB'], [2621440, '2.5 MiB']]);
  check('clock', [[0, '00:00'], [61.9, '01:01'], [3599.9, '59:59'], [3600, '1:00:00'], [90061, '25:01:01']]);
  assert.strictEqual(use('counted')(1, 'key'), '1 key');
  assert.strictEqual(use('counted')(0, 'key'), '0 keys');
  assert.strictEqual(use('counted')(1234, 'key'), '1,234 keys');
});

test('buckets are named as espy prints them', () => {
  check('bucketName', [
    [{max: -1}, '< 0'],
    [{min: 0, max: 0}, '0'],
    [{min: 2, max: 3}, '[2, 4)'],
    [{min: 1024, max: 2047}, '[1K, 2K)'],
    [{min: 1000, max: 1999}, '[1000, 2000)'],
    [{min: 1048576, max: 2097151}, '[1M, 2M)'],
    [{min: 100}, '≥ 100'],
  ]);
});

test('files have names that any system takes', () => {
  check('fileName', [
    [{name: '@'}, 'espy-map'],
    [{name: '@reads'}, 'espy-reads'],
    [{name: '@../../x y'}, 'espy-______x_y'],
  ]);
});

test('a pattern is a regular expression in any case, or nothing', () => {
  const patternOf = use('patternOf');
  assert.ok(patternOf('a.c').test('xABC'));
  assert.strictEqual(patternOf(''), null);
  assert.strictEqual(patternOf('('), null);
});

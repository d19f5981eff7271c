// Texts for numbers, times and names. Nothing here uses the document.

// 1234567 as "1,234,567"; what is no integer with three digits.
function grouped(value) {
  if (typeof value === 'number' && !Number.isInteger(value)) return value.toPrecision(3);
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',');
}

// 1234567 as "1.23M".
function short(value) {
  if (Math.abs(value) < 1000) return Number.isInteger(value) ? String(value) : value.toPrecision(3);
  const power = Math.min(Math.floor(Math.log10(Math.abs(value)) / 3), 6);
  return (value / 1000 ** power).toPrecision(3) + ' kMGTPE'[power];
}

// Parts of keys are texts, also those that are numbers.
function isNumber(value) {
  return typeof value === 'number' || (typeof value === 'string' && /^-?\d+$/.test(value));
}

// Text of a traced program such that nothing of it is invisible: empty, control characters, and those that turn the
// direction of writing.
function visible(text) {
  if (text === '') return '""';
  const escape = character =>
      ({'\n': '\\n', '\t': '\\t', '\r': '\\r'})[character] || '\\u{' + character.codePointAt(0).toString(16) + '}';
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]/g, escape);
}

function keyText(key) {
  return key.map(visible).join(', ');
}

// The value of an entry, which has a text of its own if it is a tuple or the like.
function valueText([, value, text]) {
  if (text !== undefined) return visible(text);
  if (isNumber(value)) return grouped(value);
  return typeof value === 'string' ? visible(value) : JSON.stringify(value);
}

// ---- What a map has

const kKindWords = {
  count_t: 'count',
  sum_t: 'sum',
  min_t: 'minimum',
  max_t: 'maximum',
  avg_t: 'average',
  stats_t: 'count, average and total',
  hist_t: 'histogram',
  lhist_t: 'histogram',
  tseries_t: 'time series',
  recent_t: 'last values',
};

// "sum, in bytes"; "samples" of a map of stacks.
function kindText(map) {
  const word = map.sampled ? 'samples' : kKindWords[map.kind] || (map.kind === 'int' ? 'number' : map.kind);
  return (map.scratch ? 'between two events: ' : '') + word + (map.unit ? ', in ' + map.unit : '');
}

// The columns that a value has in a table: their names, and the number of an entry.
function valueColumns(map) {
  if (map.kind === 'stats_t') {
    return ['count', 'average', 'total'].map(name => ({name, of: ([, value]) => value[name]}));
  }
  const name = {count_t: 'count', sum_t: 'sum', min_t: 'minimum', max_t: 'maximum', avg_t: 'average'}[map.kind];
  return [{name: name || 'value', of: ([, value]) => value}];
}

// The number of an entry that grows with the events; null if it has none. Averages and extremes come and go.
function grownNumber(map, [, value]) {
  if (map.kind === 'stats_t') return value.count;
  return ['count_t', 'sum_t', 'int'].includes(map.kind) && isNumber(value) ? value : null;
}

function percent(share) {
  return (share * 100).toFixed(share < 0.1 ? 2 : 1) + '%';
}

function byteSize(bytes) {
  const mebibyte = 1024 * 1024;
  return bytes < mebibyte ? Math.ceil(bytes / 1024) + ' KiB' : (bytes / mebibyte).toFixed(1) + ' MiB';
}

// "01:02", "1:01:02".
function clock(seconds) {
  const twoDigits = number => String(Math.floor(number)).padStart(2, '0');
  const hours = seconds >= 3600 ? Math.floor(seconds / 3600) + ':' : '';
  return hours + twoDigits(seconds / 60 % 60) + ':' + twoDigits(seconds % 60);
}

// "3 keys", "1 key".
function counted(count, noun) {
  return grouped(count) + ' ' + noun + (count === 1 ? '' : 's');
}

// A bucket of hist() or lhist(), as espy prints it: "[4K, 8K)". `max` belongs to the bucket.
function bucketName(bucket) {
  const binary = number => {
    let power = 0;
    while (power < 6 && number !== 0 && number % 1024 === 0) {
      number /= 1024;
      ++power;
    }
    return number + ['', 'K', 'M', 'G', 'T', 'P', 'E'][power];
  };
  if (bucket.min === undefined) return '< ' + (Number(bucket.max) + 1);
  if (bucket.max === undefined) return '≥ ' + bucket.min;
  const end = Number(bucket.max) + 1;
  if (Number(bucket.min) + 1 === end) return String(bucket.min);
  return '[' + binary(Number(bucket.min)) + ', ' + binary(end) + ')';
}

// The name under which a map is saved, without a suffix.
function fileName(map) {
  return 'espy-' + (map.name.slice(1).replace(/\W/g, '_') || 'map');
}

// The regular expression that a user has typed; null if there is none, or an unfinished one.
function patternOf(text) {
  if (!text) return null;
  try {
    return new RegExp(text, 'i');
  } catch (error) {
    return null;
  }
}

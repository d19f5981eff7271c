// The views of the page of a run: numbers, tables, histograms with their heat map, the log. See page_script.h.
#pragma once

#include <string_view>

namespace espy::serve {

constexpr std::string_view kPageViews = R"(
// How fast a number grows, by its values of the last seconds.
class Rate {
  constructor() { this.points = []; }
  add(time, value) {
    this.points.push([time, Number(value)]);
    while (this.points.length > 2 && this.points[1][0] < time - 2) this.points.shift();
  }
  text() {
    const [first] = this.points, last = this.points[this.points.length - 1];
    if (!first || last[0] - first[0] < 0.5) return '';
    const rate = (last[1] - first[1]) / (last[0] - first[0]);
    return rate === 0 ? '' : (rate > 0 ? '+' : '') + short(rate) + '/s';
  }
}

// ---- A map without keys

class NumberView extends View {
  constructor(map) {
    super(map, false);
    this.number = make('div', {className: 'number'});
    this.rate = make('span', {className: 'rate'});
    this.line = draw('svg', {height: 40, role: 'img', 'aria-label': map.name + ' over time'});
    this.content.append(this.number, this.rate, this.line);
    this.picture = () => this.line;
    this.tools.append(...saveButtons(this));
    this.rates = new Rate();
    this.history = [];
  }
  take(map, time) {
    super.take(map);
    const value = map.entries.length ? map.entries[0][1] : null;
    if (!isNumber(value)) return;
    this.rates.add(time, value);
    this.isStale = true;
    const last = this.history[this.history.length - 1];
    if (last && time - last[0] < 0.5) last[1] = Number(value);
    else this.history.push([time, Number(value)]);
    if (this.history.length > 240) this.history.shift();
  }
  show() {
    const value = this.map.entries.length ? this.map.entries[0][1] : null;
    if (value && typeof value === 'object' && 'average' in value)
      this.number.textContent = plain(value.average);
    else
      this.number.textContent = value === null ? '–' : plain(value);
    this.rate.textContent = value && value.count !== undefined && !Array.isArray(value) ?
      'average of ' + grouped(value.count) + ', total ' + grouped(value.total) : this.rates.text();
    const values = this.history.map(point => point[1]), low = Math.min(...values), high = Math.max(...values);
    this.line.style.display = values.length > 1 && high > low ? '' : 'none';
    if (values.length < 2 || high === low) return;
    const width = this.line.getBoundingClientRect().width || 300, begin = this.history[0][0];
    const end = this.history[this.history.length - 1][0];
    const points = this.history.map(([time, each]) =>
      ((time - begin) / (end - begin) * width).toFixed(1) + ',' + (37 - (each - low) / (high - low) * 34).toFixed(1));
    this.line.replaceChildren(draw('polyline', {points: points.join(' '), fill: 'none', stroke: '#e0813f',
                                                'stroke-width': 1.5}));
  }
}

// ---- A map with keys

class TableView extends View {
  constructor(map) {
    super(map, map.labels.length > 2);
    this.filter = make('input', {type: 'search', placeholder: 'filter keys',
                                 ariaLabel: 'filter the keys of ' + map.name});
    this.filter.oninput = () => { this.isStale = true; schedule(); };
    this.tools.append(this.filter, ...saveButtons(this));
    this.sort = {column: map.labels.length, isDown: true};
    this.heads = [...map.labels, 'value'].map((name, column) => make('button', {
      type: 'button', textContent: name, onclick: () => this.sortBy(column)}));
    this.body = make('tbody');
    this.content.append(
      make('div', {className: 'scroll', tabIndex: 0, ariaLabel: 'table of ' + map.name}, make('table', {},
        make('thead', {}, make('tr', {}, ...this.heads.map((button, column) =>
          make('th', {className: column === map.labels.length ? 'value' : ''}, button)),
          make('th'), make('th'))), this.body)),
      this.note = make('div', {className: 'note'}));
    this.rows = new Map();
  }
  sortBy(column) {
    const isSame = this.sort.column === column;
    this.sort = {column, isDown: isSame ? !this.sort.isDown : column === this.map.labels.length};
    this.isStale = true;
    schedule();
  }
  take(map, time) {
    super.take(map);
    if (this.takenAt && time - this.takenAt < 0.25) return;
    this.takenAt = time;
    for (const [key, value] of map.entries) {
      if (!isNumber(value)) continue;
      const row = this.rowOf(key);
      row.rate.add(time, value);
    }
    this.isStale = true;
  }
  rowOf(key) {
    const id = JSON.stringify(key);
    let row = this.rows.get(id);
    if (!row) {
      row = {value: make('td', {className: 'value'}), bar: make('div'), speed: make('td', {className: 'value rate'}),
             rate: new Rate()};
      row.element = make('tr', {}, ...key.map(text => make('td', {textContent: text})), row.value,
                         make('td', {className: 'share'}, row.bar), row.speed);
      this.rows.set(id, row);
    }
    return row;
  }
  show() {
    const wanted = this.filter.value.toLowerCase(), {column, isDown} = this.sort, count = this.map.labels.length;
    const entries = this.map.entries.filter(([key]) => !wanted || key.join(' ').toLowerCase().includes(wanted));
    const order = (a, b) => {
      const [x, y] = column === count ? [a[1], b[1]] : [a[0][column], b[0][column]];
      const compared = isNumber(x) && isNumber(y) ? Number(x) - Number(y) : plain(x) < plain(y) ? -1 : 1;
      return isDown ? -compared : compared;
    };
    entries.sort(order);
    const most = Math.max(...entries.map(([, value]) => isNumber(value) ? Number(value) : 0), 1);
    this.heads.forEach((button, index) => button.parentElement.setAttribute('aria-sort',
      index !== column ? 'none' : isDown ? 'descending' : 'ascending'));
    const rows = entries.map(([key, value]) => {
      const row = this.rowOf(key);
      row.value.textContent = plain(value);
      row.bar.style.width = isNumber(value) ? Math.max(Number(value) / most * 100, 0) + '%' : '0';
      row.speed.textContent = row.rate.text();
      return row.element;
    });
    const shown = this.body.children;
    const isMoved = rows.length !== shown.length || rows.some((row, index) => shown[index] !== row);
    if (isMoved) this.body.replaceChildren(...rows);
    const left = this.map.keys - this.map.entries.length;
    this.note.textContent = grouped(this.map.keys) + (this.map.keys === 1 ? ' key' : ' keys') +
      (left > 0 ? ', of which the largest ' + this.map.entries.length + ' are here' : '');
    if (this.rows.size > 4 * this.map.entries.length + 1000) this.rows.clear();
  }
}

// ---- Histograms

function bucketName(bucket) {
  const power = number => {
    let index = 0;
    while (index < 6 && number !== 0 && number % 1024 === 0) { number /= 1024; ++index; }
    return number + ['', 'K', 'M', 'G', 'T', 'P', 'E'][index];
  };
  if (bucket.min === undefined) return '< ' + (Number(bucket.max) + 1);
  if (bucket.max === undefined) return '≥ ' + bucket.min;
  const end = Number(bucket.max) + 1;
  if (Number(bucket.min) + 1 === end) return String(bucket.min);
  return '[' + power(Number(bucket.min)) + ', ' + power(end) + ')';
}

class HistogramView extends View {
  constructor(map) {
    super(map, false);
    this.keys = make('select', {ariaLabel: 'key of ' + map.name, hidden: map.scalar,
                                onchange: () => { this.isStale = true; schedule(); }});
    this.mode = make('button', {type: 'button', textContent: 'over time', ariaPressed: 'false',
                                title: 'show a heat map of the last minutes'});
    this.mode.onclick = () => {
      this.isHeat = !this.isHeat;
      this.mode.setAttribute('aria-pressed', this.isHeat);
      this.span.hidden = !this.isHeat;
      this.isStale = true;
      schedule();
    };
    this.span = make('select', {ariaLabel: 'how much time', hidden: true,
                                onchange: () => { this.isStale = true; schedule(); }},
      ...[60, 180, 600].map(seconds => make('option', {value: seconds, textContent: seconds / 60 + ' min'})));
    this.svg = draw('svg', {role: 'img', 'aria-label': 'histogram of ' + map.name});
    this.picture = () => this.svg;
    this.note = make('div', {className: 'note'});
    this.tools.append(this.keys, this.mode, this.span, ...saveButtons(this));
    this.content.append(this.svg, this.note);
    this.series = new Map();  // by key: what each second added, by the name of the bucket
  }
  take(map, time) {
    super.take(map);
    const second = Math.floor(time);
    for (const [key, buckets] of map.entries) {
      const id = key.join(', ');
      let series = this.series.get(id);
      if (!series) this.series.set(id, series = {last: null, columns: []});
      const counts = new Map(buckets.map(bucket => [bucketName(bucket), bucket.count]));
      if (series.last) {
        let column = series.columns[series.columns.length - 1];
        if (!column || column.second !== second) series.columns.push(column = {second, counts: new Map()});
        for (const [name, count] of counts) {
          const more = count - (series.last.get(name) || 0);
          if (more > 0) column.counts.set(name, (column.counts.get(name) || 0) + more);
        }
        while (series.columns.length > 600) series.columns.shift();
      }
      series.last = counts;
    }
    this.now = second;
    if (this.isHeat) this.isStale = true;
  }
  show() {
    const names = this.map.entries.map(([key]) => key.join(', ')).reverse();
    if (names.join('\n') !== this.known) {
      const chosen = this.keys.value;
      this.known = names.join('\n');
      this.keys.replaceChildren(...names.map(name => make('option', {value: name, textContent: name})));
      if (names.includes(chosen)) this.keys.value = chosen;
    }
    const id = this.map.scalar ? '' : this.keys.value;
    const entry = this.map.entries.find(([key]) => key.join(', ') === id);
    const buckets = entry ? entry[1] : [];
    if (this.isHeat) this.showHeat(buckets, this.series.get(id)); else this.showBars(buckets);
    const total = buckets.reduce((sum, bucket) => sum + bucket.count, 0);
    this.note.textContent = grouped(total) + ' values' +
      (this.map.keys > 1 ? ', one of ' + this.map.keys + ' keys' : '');
  }
  size(rows) {
    const height = rows * 18 + (this.isHeat ? 20 : 4);
    this.svg.setAttribute('height', height);
    return [this.svg.getBoundingClientRect().width || 400, height];
  }
  showBars(buckets) {
    const [width] = this.size(buckets.length), left = 104, right = 76, room = Math.max(width - left - right, 20);
    const most = Math.max(...buckets.map(bucket => bucket.count), 1);
    this.svg.replaceChildren(...buckets.flatMap((bucket, index) => {
      const y = index * 18 + 2;
      return [draw('text', {x: left - 8, y: y + 12, 'text-anchor': 'end'}, bucketName(bucket)),
              draw('rect', {x: left, y, width: bucket.count / most * room, height: 15, rx: 2, fill: '#e0813f'}),
              draw('text', {x: left + bucket.count / most * room + 6, y: y + 12}, grouped(bucket.count))];
    }));
  }
  showHeat(buckets, series) {
    const [width] = this.size(buckets.length), left = 104, room = Math.max(width - left - 4, 20);
    const seconds = Number(this.span.value), begin = this.now - seconds + 1, step = room / seconds;
    const columns = (series ? series.columns : []).filter(column => column.second >= begin);
    const most = Math.max(1, ...columns.flatMap(column => [...column.counts.values()]));
    const rows = buckets.slice().reverse().map(bucketName);
    const heat = getComputedStyle(document.documentElement).getPropertyValue('--heat');
    const cells = columns.flatMap(column => rows.flatMap((name, index) => {
      const count = column.counts.get(name);
      if (!count) return [];
      const x = left + (column.second - begin) * step, share = Math.log1p(count) / Math.log1p(most);
      return [draw('rect', {x: x.toFixed(2), y: index * 18, width: Math.max(step - 0.3, 0.5).toFixed(2), height: 17,
                            fill: `rgb(${heat})`, 'fill-opacity': (0.12 + 0.88 * share).toFixed(2)},
                   draw('title', {}, `${name}: ${grouped(count)} at ${clock(column.second)}`))];
    }));
    const bottom = rows.length * 18 + 14;
    this.svg.replaceChildren(
      ...rows.map((name, index) => draw('text', {x: left - 8, y: index * 18 + 13, 'text-anchor': 'end'}, name)),
      ...cells, draw('text', {x: left, y: bottom}, clock(Math.max(begin, 0))),
      draw('text', {x: left + room, y: bottom, 'text-anchor': 'end'}, clock(this.now)));
  }
}

// ---- The log

class LogView {
  constructor() {
    this.filter = make('input', {type: 'search', placeholder: 'filter lines, by regular expression',
                                 ariaLabel: 'filter the log'});
    this.filter.oninput = () => { this.shown = -1; schedule(); };
    this.list = make('ul', {className: 'lines', tabIndex: 0, ariaLabel: 'log'});
    this.note = make('div', {className: 'note'});
    const saveText = () => save('espy-log.txt', 'text/plain', this.lines().map(line => line[2] + '\n').join(''));
    this.panel = make('section', {className: 'wide', hidden: true, ariaLabel: 'log'}, make('h2', {textContent: 'log'}),
      make('div', {className: 'tools'}, this.filter,
           make('button', {type: 'button', textContent: 'Text', title: 'save the lines as text', onclick: saveText})),
      this.list, this.note);
    this.shown = -1;
  }
  lines() {
    let wanted;
    try { wanted = new RegExp(this.filter.value, 'i'); } catch (error) { return state.lines; }
    return state.lines.filter(line => wanted.test(line[2]));
  }
  show() {
    const last = state.lines.length ? state.lines[state.lines.length - 1][0] : -1;
    if (last === this.shown) return;
    this.shown = last;
    this.panel.hidden = state.lines.length === 0;
    const isAtEnd = this.list.scrollTop + this.list.clientHeight >= this.list.scrollHeight - 30;
    const found = this.lines(), lines = found.slice(-1000);
    this.list.replaceChildren(...lines.map(([, kind, text]) => make('li', {className: kind, textContent: text})));
    const unseen = last + 1 - state.lines.length;
    this.note.textContent = grouped(found.length) + (found.length === 1 ? ' line' : ' lines') +
      (found.length > lines.length ? ', the last ' + lines.length + ' are here' : '') +
      (unseen > 0 ? '; ' + grouped(unseen) + ' earlier ones are not kept' : '');
    if (isAtEnd) this.list.scrollTop = this.list.scrollHeight;
  }
}
)";

}  // namespace espy::serve

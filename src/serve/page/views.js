// The panels of the page: a number, a table, the log. See histogram_view.js and flame_view.js for the others.
//
// A view takes each message, and draws itself when the page calls `show`: seldom, and only if it is stale.

// A panel with the name of a map, its comment, tools and content.
class View {
  constructor(map, isWide) {
    this.map = map;
    this.isStale = true;
    this.seen = make('p', {className: 'help'});
    this.tools = make('div', {className: 'tools'});
    this.content = make('div');
    this.panel = make(
        'section', {className: isWide ? 'wide' : '', ariaLabel: map.name}, make('h2', {textContent: map.name}),
        this.seen, make('p', {className: 'help', textContent: map.help}), this.tools, this.content);
  }

  // `time`: seconds since the run began.
  take(map, time) {
    if (map !== this.map) this.isStale = true;
    this.map = map;
    this.seen.textContent = map.seen < 1 ? 'sampled: ' + percent(map.seen) + ' of the events' : '';
  }

  // Draws the view again, for something that its user has chosen.
  refresh() {
    this.isStale = true;
    schedule();
  }
}

// How fast a number grows, by its values of the last seconds.
class Rate {
  constructor() {
    this.points = [];
  }

  add(time, value) {
    this.points.push([time, Number(value)]);
    while (this.points.length > 2 && this.points[1][0] < time - 2) this.points.shift();
  }

  // "+1.20k/s"; empty if that is not known yet, or nothing changes.
  text() {
    const first = this.points[0];
    const last = this.points[this.points.length - 1];
    if (!first || last[0] - first[0] < 0.5) return '';
    const rate = (last[1] - first[1]) / (last[0] - first[0]);
    if (rate === 0) return '';
    return (rate > 0 ? '+' : '') + short(rate) + '/s';
  }
}

// ---- A map without keys

// The points of a line through `history`, [time, value] each, 40 high; empty if there is nothing to see in it.
function trendPoints(history, width) {
  const values = history.map(([, value]) => value);
  const low = Math.min(...values);
  const high = Math.max(...values);
  if (history.length < 2 || high === low) return '';
  const begin = history[0][0];
  const end = history[history.length - 1][0];
  return history
      .map(([time, value]) => {
        const x = (time - begin) / (end - begin) * width;
        const y = 37 - (value - low) / (high - low) * 34;
        return x.toFixed(1) + ',' + y.toFixed(1);
      })
      .join(' ');
}

class NumberView extends View {
  constructor(map) {
    super(map, false);
    this.number = make('div', {className: 'number'});
    this.rateText = make('span', {className: 'rate'});
    this.picture = draw('svg', {height: 40, role: 'img', 'aria-label': map.name + ' over time'});
    this.content.append(this.number, this.rateText, this.picture);
    this.tools.append(...makeSaveButtons(this));
    this.rate = new Rate();
    this.history = [];  // [time, value] each
  }

  value() {
    return this.map.entries.length ? this.map.entries[0][1] : null;
  }

  take(map, time) {
    super.take(map, time);
    const value = this.value();
    if (!isNumber(value)) return;
    this.rate.add(time, value);
    this.remember(time, Number(value));
    this.isStale = true;
  }

  remember(time, value) {
    const last = this.history[this.history.length - 1];
    if (last && time - last[0] < 0.5) {
      last[1] = value;
    } else {
      this.history.push([time, value]);
    }
    if (this.history.length > 240) this.history.shift();
  }

  show() {
    const value = this.value();
    const isStatistic = value !== null && typeof value === 'object' && 'average' in value;
    if (value === null) {
      this.number.textContent = '–';
    } else {
      this.number.textContent = plain(isStatistic ? value.average : value);
    }
    const isCounted = value !== null && value.count !== undefined && !Array.isArray(value);
    this.rateText.textContent =
        isCounted ? 'average of ' + grouped(value.count) + ', total ' + grouped(value.total) : this.rate.text();
    this.showTrend();
  }

  showTrend() {
    // Only a picture that is shown has a width.
    this.picture.style.display = trendPoints(this.history, 1) ? '' : 'none';
    const points = trendPoints(this.history, widthOf(this.picture, 300));
    if (!points) return;
    this.picture.replaceChildren(draw('polyline', {points, fill: 'none', stroke: kBarColour, 'stroke-width': 1.5}));
  }
}

// ---- A map with keys

// The entries, [key, value] each, with `text` in their key, in any case.
function entriesWith(entries, text) {
  const wanted = text.toLowerCase();
  return entries.filter(([key]) => !wanted || key.join(' ').toLowerCase().includes(wanted));
}

// The order of two cells: of numbers by value, of all else by text.
function compare(a, b) {
  if (isNumber(a) && isNumber(b)) return Number(a) - Number(b);
  const [x, y] = [plain(a), plain(b)];
  if (x === y) return 0;
  return x < y ? -1 : 1;
}

// Sorts entries by a part of their keys, or by their values if there is no such part.
function sortEntries(entries, column, isDown) {
  const cell = ([key, value]) => column < key.length ? key[column] : value;
  entries.sort((a, b) => isDown ? compare(cell(b), cell(a)) : compare(cell(a), cell(b)));
}

class TableView extends View {
  constructor(map) {
    super(map, map.labels.length > 2);
    this.valueColumn = map.labels.length;
    this.sort = {column: this.valueColumn, isDown: true};
    this.rows = new Map();  // by the JSON of the key
    this.filter = make('input', {
      type: 'search',
      placeholder: 'filter keys',
      ariaLabel: 'filter the keys of ' + map.name,
      oninput: () => this.refresh(),
    });
    this.heads = [...map.labels, 'value'].map(
        (label, column) => make('button', {type: 'button', textContent: label, onclick: () => this.sortBy(column)}));
    this.body = make('tbody');
    this.note = make('div', {className: 'note'});
    this.tools.append(this.filter, ...makeSaveButtons(this));
    this.content.append(
        make(
            'div', {className: 'scroll', tabIndex: 0, ariaLabel: 'table of ' + map.name},
            make('table', {}, this.makeHead(), this.body)),
        this.note);
  }

  makeHead() {
    const cells =
        this.heads.map((button, column) => make('th', {className: column === this.valueColumn ? 'value' : ''}, button));
    return make('thead', {}, make('tr', {}, ...cells, make('th'), make('th')));
  }

  sortBy(column) {
    const isSame = this.sort.column === column;
    this.sort = {column, isDown: isSame ? !this.sort.isDown : column === this.valueColumn};
    this.refresh();
  }

  take(map, time) {
    super.take(map, time);
    if (this.takenAt && time - this.takenAt < 0.25) return;
    this.takenAt = time;
    for (const [key, value] of map.entries) {
      if (isNumber(value)) this.rowOf(key).rate.add(time, value);
    }
    this.isStale = true;
  }

  rowOf(key) {
    const id = JSON.stringify(key);
    if (!this.rows.has(id)) this.rows.set(id, this.makeRow(key));
    return this.rows.get(id);
  }

  makeRow(key) {
    const row = {
      value: make('td', {className: 'value'}),
      bar: make('div'),
      rateText: make('td', {className: 'value rate'}),
      rate: new Rate(),
    };
    row.element = make(
        'tr', {}, ...key.map(part => make('td', {textContent: part})), row.value,
        make('td', {className: 'share'}, row.bar), row.rateText);
    return row;
  }

  show() {
    const entries = entriesWith(this.map.entries, this.filter.value);
    sortEntries(entries, this.sort.column, this.sort.isDown);
    this.showOrder();
    this.showRows(entries);
    this.showCount();
    if (this.rows.size > 4 * this.map.entries.length + 1000) this.rows.clear();
  }

  showOrder() {
    const {column, isDown} = this.sort;
    this.heads.forEach((button, index) => {
      const order = isDown ? 'descending' : 'ascending';
      button.parentElement.setAttribute('aria-sort', index === column ? order : 'none');
    });
  }

  showRows(entries) {
    const size = value => isNumber(value) ? Number(value) : 0;
    const largest = Math.max(...entries.map(([, value]) => size(value)), 1);
    const elements = entries.map(([key, value]) => {
      const row = this.rowOf(key);
      row.value.textContent = plain(value);
      row.bar.style.width = Math.max(size(value) / largest * 100, 0) + '%';
      row.rateText.textContent = row.rate.text();
      return row.element;
    });
    const shown = this.body.children;
    const isMoved = elements.length !== shown.length || elements.some((element, index) => shown[index] !== element);
    if (isMoved) this.body.replaceChildren(...elements);
  }

  showCount() {
    const here = this.map.entries.length;
    this.note.textContent =
        counted(this.map.keys, 'key') + (this.map.keys > here ? ', of which the largest ' + here + ' are here' : '');
  }
}

// ---- The log

const kMaxShownLines = 1000;

class LogView {
  constructor() {
    this.shownLine = -1;  // the number of the last one
    this.filter = make('input', {
      type: 'search',
      placeholder: 'filter lines, by regular expression',
      ariaLabel: 'filter the log',
      oninput: () => {
        this.shownLine = -1;
        schedule();
      },
    });
    this.list = make('ul', {className: 'lines', tabIndex: 0, ariaLabel: 'log'});
    this.note = make('div', {className: 'note'});
    this.panel = make(
        'section', {className: 'wide', hidden: true, ariaLabel: 'log'}, make('h2', {textContent: 'log'}),
        make(
            'div', {className: 'tools'}, this.filter,
            makeButton('Text', 'save the lines as text', () => this.saveText())),
        this.list, this.note);
  }

  saveText() {
    save('espy-log.txt', 'text/plain', this.foundLines().map(([, , text]) => text + '\n').join(''));
  }

  // Those that the filter lets through; all if it is no regular expression.
  foundLines() {
    const wanted = patternOf(this.filter.value);
    return wanted ? state.lines.filter(([, , text]) => wanted.test(text)) : state.lines;
  }

  show() {
    const last = lastLine(state);
    if (last === this.shownLine) return;
    this.shownLine = last;
    this.panel.hidden = state.lines.length === 0;
    const isAtEnd = this.list.scrollTop + this.list.clientHeight >= this.list.scrollHeight - 30;
    const found = this.foundLines();
    const shown = found.slice(-kMaxShownLines);
    this.list.replaceChildren(...shown.map(([, kind, text]) => make('li', {className: kind, textContent: text})));
    const forgotten = last + 1 - state.lines.length;
    this.note.textContent = counted(found.length, 'line') +
        (found.length > shown.length ? ', the last ' + shown.length + ' are here' : '') +
        (forgotten > 0 ? '; ' + grouped(forgotten) + ' earlier ones are not kept' : '');
    if (isAtEnd) this.list.scrollTop = this.list.scrollHeight;
  }
}

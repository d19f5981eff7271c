// The panels of the page: a number, a table, the log. See histogram_view.js, series_view.js and flame_view.js for the
// others.
//
// A view takes each message, and draws itself when the page calls `show`: seldom, and only if it is stale.

// A panel with the name of a map, its kind, its comment, tools and content.
class View {
  constructor(map, className) {
    this.map = map;
    this.isStale = true;
    this.fold = make('button', {type: 'button', className: 'fold', onclick: () => this.toggle()});
    this.kind = make('span', {className: 'kind'});
    this.seen = make('p', {className: 'help'});
    this.tools = make('div', {className: 'tools'});
    this.content = make('div');
    this.body = make(
        'div', {}, this.seen, make('p', {className: 'help', textContent: map.help, hidden: !map.help}), this.tools,
        this.content);
    this.panel = make(
        'section', {className, ariaLabel: map.name},
        make('div', {className: 'head'}, this.fold, make('h2', {textContent: visible(map.name)}), this.kind),
        this.body);
    this.setFolded(Boolean(map.scratch));
  }

  setFolded(isFolded) {
    this.isFolded = isFolded;
    this.body.hidden = isFolded;
    this.fold.textContent = isFolded ? '▸' : '▾';
    this.fold.title = isFolded ? 'unfold' : 'fold';
    this.fold.setAttribute('aria-expanded', !isFolded);
    this.fold.setAttribute('aria-label', this.fold.title + ' ' + this.map.name);
  }

  toggle() {
    this.setFolded(!this.isFolded);
    this.refresh();
  }

  // `time`: seconds since the run began.
  take(map, time) {
    if (map !== this.map) this.isStale = true;
    this.map = map;
    this.kind.textContent = kindText(map);
    this.seen.textContent = map.seen < 1 ? 'sampled: ' + percent(map.seen) + ' of the events' : '';
    this.seen.hidden = !this.seen.textContent;
  }

  // Draws the view again, for something that its user has chosen.
  refresh() {
    this.isStale = true;
    schedule();
  }
}

// How fast a number grows, by its values of the last seconds. A number that becomes less was cleared, or is no counter.
class Rate {
  constructor() {
    this.points = [];
    this.hasFallen = false;
  }

  add(time, value) {
    const last = this.points[this.points.length - 1];
    if (last && Number(value) < last[1]) {
      this.points = [];
      this.hasFallen = true;
    }
    this.points.push([time, Number(value)]);
    while (this.points.length > 2 && this.points[1][0] < time - 2) this.points.shift();
  }

  // "+1.20k/s"; empty if that is not known yet, or nothing changes.
  text() {
    const first = this.points[0];
    const last = this.points[this.points.length - 1];
    if (!first || last[0] - first[0] < 0.5) return '';
    const rate = (last[1] - first[1]) / (last[0] - first[0]);
    return rate === 0 ? '' : '+' + short(rate) + '/s';
  }

  // The same for a map of that kind: a number that falls is no counter, unless the script clears counters.
  textOf(map) {
    return this.hasFallen && map.kind === 'int' ? '' : this.text();
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
    super(map, 'small');
    this.number = make('div', {className: 'number'});
    this.rateText = make('span', {className: 'rate'});
    this.picture = draw('svg', {height: 40, role: 'img', 'aria-label': map.name + ' over time'});
    this.content.append(this.number, this.rateText, this.picture);
    this.tools.append(...makeSaveButtons(this));
    this.rate = new Rate();
    this.history = [];  // [time, value] each
  }

  // The number of a statistic is its average.
  value() {
    const entry = this.map.entries[0];
    if (!entry) return null;
    return this.map.kind === 'stats_t' ? entry[1].average : entry[1];
  }

  take(map, time) {
    super.take(map, time);
    const value = this.value();
    if (!isNumber(value)) return;
    const grown = grownNumber(map, map.entries[0]);
    if (grown !== null) this.rate.add(time, grown);
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
    const entry = this.map.entries[0];
    const isStatistic = entry && this.map.kind === 'stats_t';
    const text = !entry ? '–' : isStatistic ? grouped(entry[1].average) : valueText(entry);
    // A long number breaks between its groups.
    this.number.replaceChildren(...text.split(/(?<=,)(?=\d{3})/).flatMap(part => [part, make('wbr')]));
    this.number.className = text.length > 14 ? 'number long' : 'number';
    this.rateText.textContent = isStatistic ?
        'average of ' + grouped(entry[1].count) + ', total ' + grouped(entry[1].total) :
        this.rate.textOf(this.map);
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
  const [x, y] = [a, b].map(each => typeof each === 'string' ? each : JSON.stringify(each));
  if (x === y) return 0;
  return x < y ? -1 : 1;
}

// Sorts entries by a column: a part of their keys, or one of `values` behind these.
function sortEntries(entries, values, column, isDown) {
  const cell = entry => column < entry[0].length ? entry[0][column] : values[column - entry[0].length].of(entry);
  entries.sort((a, b) => isDown ? compare(cell(b), cell(a)) : compare(cell(a), cell(b)));
}

class TableView extends View {
  constructor(map) {
    super(map, map.labels.length > 2 ? 'wide' : '');
    this.values = valueColumns(map);
    // A statistic is sorted, and has bars, by its total.
    this.sort = {column: map.labels.length + this.values.length - 1, isDown: true};
    this.rows = new Map();  // by the JSON of the key
    this.filter = make('input', {
      type: 'search',
      placeholder: 'filter keys',
      ariaLabel: 'filter the keys of ' + map.name,
      oninput: () => this.refresh(),
    });
    this.heads = [...map.labels, ...this.values.map(({name}) => name)].map(
        (label, column) => make('button', {type: 'button', textContent: label, onclick: () => this.sortBy(column)}));
    this.tableBody = make('tbody');
    this.note = make('div', {className: 'note'});
    this.tools.append(this.filter, ...makeSaveButtons(this));
    this.content.append(
        make(
            'div', {className: 'scroll', tabIndex: 0, ariaLabel: 'table of ' + map.name},
            make('table', {}, this.makeHead(), this.tableBody)),
        this.note);
  }

  isValue(column) {
    return column >= this.map.labels.length;
  }

  makeHead() {
    const cells =
        this.heads.map((button, column) => make('th', {className: this.isValue(column) ? 'value' : ''}, button));
    return make('thead', {}, make('tr', {}, ...cells, make('th'), make('th')));
  }

  sortBy(column) {
    const isSame = this.sort.column === column;
    this.sort = {column, isDown: isSame ? !this.sort.isDown : this.isValue(column)};
    this.refresh();
  }

  take(map, time) {
    super.take(map, time);
    if (this.takenAt && time - this.takenAt < 0.25) return;
    this.takenAt = time;
    for (const entry of map.entries) {
      const grown = grownNumber(map, entry);
      if (grown !== null) this.rowOf(entry[0]).rate.add(time, grown);
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
      values: this.values.map(() => make('td', {className: 'value'})),
      bar: make('div'),
      rateText: make('td', {className: 'value rate'}),
      rate: new Rate(),
    };
    const cells = key.map(part => {
      const text = visible(part);
      return make('td', {textContent: text, className: text === part ? '' : 'odd'});
    });
    row.element = make('tr', {}, ...cells, ...row.values, make('td', {className: 'share'}, row.bar), row.rateText);
    return row;
  }

  show() {
    const entries = entriesWith(this.map.entries, this.filter.value);
    sortEntries(entries, this.values, this.sort.column, this.sort.isDown);
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
    // The last column is the one that adds up.
    const last = this.values[this.values.length - 1];
    const size = entry => isNumber(last.of(entry)) ? Number(last.of(entry)) : 0;
    const largest = entries.reduce((most, entry) => Math.max(most, size(entry)), 1);
    const elements = entries.map(entry => {
      const row = this.rowOf(entry[0]);
      row.values.forEach((cell, index) => {
        const value = this.values[index].of(entry);
        cell.textContent = this.values.length > 1 ? grouped(value) : valueText(entry);
      });
      row.bar.style.width = Math.max(size(entry) / largest * 100, 0) + '%';
      row.rateText.textContent = row.rate.textOf(this.map);
      return row.element;
    });
    const shown = this.tableBody.children;
    const isMoved = elements.length !== shown.length || elements.some((element, index) => shown[index] !== element);
    if (isMoved) this.tableBody.replaceChildren(...elements);
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

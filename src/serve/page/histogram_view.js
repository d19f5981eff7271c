// Histograms: as bars, or over time as a heat map.

const kHeatSeconds = 600;  // that are kept
const kBarHeight = 18;     // with the gap below
const kNameWidth = 104;    // of the names of buckets
const kCountWidth = 76;

// What each second has added to the buckets of a histogram.
class BucketHistory {
  constructor() {
    this.last = null;   // the counts at the last time, by the names of the buckets
    this.columns = [];  // one for each second: {second, counts}, of what was added
  }

  add(second, buckets) {
    const counts = new Map(buckets.map(bucket => [bucketName(bucket), bucket.count]));
    if (this.last) {
      const column = this.columnOf(second);
      for (const [name, count] of counts) {
        const more = count - (this.last.get(name) || 0);
        if (more > 0) column.counts.set(name, (column.counts.get(name) || 0) + more);
      }
    }
    this.last = counts;
  }

  columnOf(second) {
    const newest = this.columns[this.columns.length - 1];
    if (newest && newest.second === second) return newest;
    const column = {second, counts: new Map()};
    this.columns.push(column);
    if (this.columns.length > kHeatSeconds) this.columns.shift();
    return column;
  }

  since(second) {
    return this.columns.filter(column => column.second >= second);
  }
}

// The more values, the less transparent.
function heatOpacity(count, most) {
  return (0.12 + 0.88 * Math.log1p(count) / Math.log1p(most)).toFixed(2);
}

class HistogramView extends View {
  constructor(map) {
    super(map, '');
    this.isHeat = false;
    this.histories = new Map();  // by the JSON of the key
    this.choices = null;         // the keys that can be chosen
    this.keys = make('select', {ariaLabel: 'key of ' + map.name, hidden: map.scalar, onchange: () => this.refresh()});
    this.mode = makeButton('over time', 'show a heat map of the last minutes', () => this.setHeat(!this.isHeat));
    this.mode.setAttribute('aria-pressed', false);
    this.span = make(
        'select', {ariaLabel: 'how much time', hidden: true, onchange: () => this.refresh()},
        ...[60, 180, kHeatSeconds].map(
            seconds => make('option', {value: seconds, textContent: seconds / 60 + ' min'})));
    this.picture = draw('svg', {role: 'img', 'aria-label': 'histogram of ' + map.name});
    this.legend = make('div', {className: 'legend heat', hidden: true});
    this.note = make('div', {className: 'note'});
    this.tools.append(this.keys, this.mode, this.span, ...makeSaveButtons(this));
    this.content.append(this.picture, this.legend, this.note);
  }

  setHeat(isHeat) {
    this.isHeat = isHeat;
    this.mode.setAttribute('aria-pressed', isHeat);
    this.span.hidden = this.legend.hidden = !isHeat;
    this.refresh();
  }

  take(map, time) {
    super.take(map, time);
    this.second = Math.floor(time);
    if (this.since === undefined) this.since = this.second;
    for (const [key, buckets] of map.entries) {
      const id = JSON.stringify(key);
      if (!this.histories.has(id)) this.histories.set(id, new BucketHistory());
      this.histories.get(id).add(this.second, buckets);
    }
    if (this.isHeat) this.isStale = true;
  }

  show() {
    this.showKeys();
    const id = this.map.scalar ? '[]' : this.keys.value;
    const entry = this.map.entries.find(([key]) => JSON.stringify(key) === id);
    const buckets = entry ? entry[1] : [];
    if (this.isHeat) {
      this.showHeat(buckets, this.histories.get(id));
    } else {
      this.showBars(buckets);
    }
    const total = buckets.reduce((sum, bucket) => sum + bucket.count, 0);
    this.note.textContent = counted(total, 'value') + ' in all' +
        (this.map.keys > 1 ? ', of this key; there are ' + grouped(this.map.keys) + ' keys' : '');
  }

  // The largest first. The one that was chosen stays chosen.
  showKeys() {
    const ids = this.map.entries.map(([key]) => JSON.stringify(key)).reverse();
    if (ids.join('\n') === this.choices) return;
    this.choices = ids.join('\n');
    const chosen = this.keys.value;
    const names = this.map.entries.map(([key]) => keyText(key)).reverse();
    this.keys.replaceChildren(...ids.map((id, index) => make('option', {value: id, textContent: names[index]})));
    if (ids.includes(chosen)) this.keys.value = chosen;
  }

  // Makes the picture as high as `rows` and `more`, and returns its width.
  resize(rows, more) {
    this.picture.setAttribute('height', rows * kBarHeight + more);
    return widthOf(this.picture, 400);
  }

  showBars(buckets) {
    const room = Math.max(this.resize(buckets.length, 4) - kNameWidth - kCountWidth, 20);
    const most = Math.max(...buckets.map(bucket => bucket.count), 1);
    this.picture.replaceChildren(...buckets.flatMap((bucket, index) => {
      const y = index * kBarHeight + 2;
      const width = bucket.count / most * room;
      return [
        draw('text', {x: kNameWidth - 8, y: y + 12, 'text-anchor': 'end'}, bucketName(bucket)),
        draw('rect', {x: kNameWidth, y, width, height: 15, rx: 2, fill: kBarColour}),
        draw('text', {x: kNameWidth + width + 6, y: y + 12}, grouped(bucket.count)),
      ];
    }));
  }

  // The largest values at the top, as in a graph; time goes to the right.
  showHeat(buckets, history) {
    const names = buckets.map(bucketName).reverse();
    const room = Math.max(this.resize(names.length, 20) - kNameWidth - 4, 20);
    const seconds = Number(this.span.value);
    const begin = this.second - seconds + 1;
    const bottom = names.length * kBarHeight + 14;
    const columns = history ? history.since(begin) : [];
    const most = Math.max(1, ...columns.flatMap(column => [...column.counts.values()]));
    this.showLegend(columns, most);
    this.picture.replaceChildren(
        ...names.map(
            (name, index) => draw('text', {x: kNameWidth - 8, y: index * kBarHeight + 13, 'text-anchor': 'end'}, name)),
        ...this.heatCells(names, columns, begin, room / seconds, most),
        draw('text', {x: kNameWidth, y: bottom}, clock(Math.max(begin, 0))),
        draw('text', {x: kNameWidth + room, y: bottom, 'text-anchor': 'end'}, clock(this.second)));
  }

  // The colours for 1, for the most that a second has, and between them.
  showLegend(columns, most) {
    const since = 'since this page was opened at ' + clock(this.since);
    if (columns.every(column => column.counts.size === 0)) {
      this.legend.replaceChildren('no values of this key ' + since);
      return;
    }
    const colour = getComputedStyle(document.documentElement).getPropertyValue('--heat');
    const counts = [...new Set([1, Math.round(Math.sqrt(most)), most])];
    this.legend.replaceChildren(
        'values a second: ', ...counts.flatMap(count => {
          const sample = make('span', {className: 'colour'});
          sample.style.background = `rgba(${colour}, ${heatOpacity(count, most)})`;
          return [make('span', {}, sample, grouped(count) + ' ')];
        }),
        since);
  }

  // A rectangle for each second and bucket with values; the more values, the less transparent. `step`: the width of a
  // second.
  heatCells(names, columns, begin, step, most) {
    const colour = getComputedStyle(document.documentElement).getPropertyValue('--heat');
    return columns.flatMap(({second, counts}) => names.flatMap((name, index) => {
      const count = counts.get(name);
      if (!count) return [];
      const place = {
        x: (kNameWidth + (second - begin) * step).toFixed(2),
        y: index * kBarHeight,
        width: Math.max(step - 0.3, 0.5).toFixed(2),
        height: kBarHeight - 1,
      };
      const opacity = heatOpacity(count, most);
      const title = draw('title', {}, `${name}: ${grouped(count)} at ${clock(second)}`);
      return [draw('rect', {...place, fill: `rgb(${colour})`, 'fill-opacity': opacity}, title)];
    }));
  }
}

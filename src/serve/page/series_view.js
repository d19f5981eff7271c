// Time series as a line chart: of a map without keys one line, of one with keys the largest.

const kMaxSeries = 8;  // lines in a chart
const kSeriesColours = ['#e0813f', '#3a8bd0', '#3fa66a', '#c04ad0', '#c9a227', '#d0405b', '#1fa5a5', '#8a6fe8'];
const kSeriesHeight = 200;  // of the part with the lines
const kSeriesLeft = 64;     // of the numbers at the left
const kSeriesBottom = 20;   // of the times

// "2026-11-26 21:50:57.250000000", the time where espy runs, as milliseconds. Only differences count.
function seriesTime(text) {
  return Date.parse(text.slice(0, 23).replace(' ', 'T') + 'Z');
}

// "21:50:57"; with its part of a second if there is one.
function seriesClock(time) {
  const text = new Date(time).toISOString().slice(11, 23);
  return text.endsWith('.000') ? text.slice(0, 8) : text;
}

// Steps of 1, 2 or 5 times a power of ten from `low` to `high` or beyond: three to six.
function axisTicks(low, high) {
  if (high === low) return axisTicks(low, low + (Math.abs(low) || 1));
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(each => each * power >= rough);
  const ticks = [];
  for (let tick = Math.floor(low / step); (tick - 1) * step < high; ++tick) ticks.push(tick * step);
  return ticks;
}

// The parts of a line between its gaps: intervals without a value.
function seriesParts(points) {
  const parts = [];
  let isOpen = false;
  for (const point of points) {
    if (point.value === null) {
      isOpen = false;
    } else if (isOpen) {
      parts[parts.length - 1].push(point);
    } else {
      parts.push([point]);
      isOpen = true;
    }
  }
  return parts;
}

// The lines to draw, those with the largest values first: {key, points: [{time, value}]}.
function largestSeries(entries, filter) {
  const lines =
      entriesWith(entries, filter).map(([key, points]) => ({
                                         key,
                                         points: points.map(point => ({
                                                              time: seriesTime(point.interval_start),
                                                              value: point.value === null ? null : Number(point.value),
                                                            })),
                                       }));
  const largest = line =>
      line.points.reduce((most, {value}) => value === null ? most : Math.max(most, value), -Infinity);
  return lines.sort((a, b) => largest(b) - largest(a)).slice(0, kMaxSeries);
}

class SeriesView extends View {
  constructor(map) {
    super(map, 'wide');
    this.filter = make('input', {
      type: 'search',
      placeholder: 'filter keys',
      ariaLabel: 'filter the keys of ' + map.name,
      hidden: map.scalar,
      oninput: () => this.refresh(),
    });
    this.picture = draw('svg', {role: 'img', 'aria-label': 'values of ' + map.name + ' over time'});
    this.picture.addEventListener('mousemove', event => this.tell(event.offsetX));
    this.details = make('div', {className: 'details', ariaLive: 'polite'});
    this.legend = make('ul', {className: 'legend'});
    this.note = make('div', {className: 'note'});
    this.tools.append(this.filter, ...makeSaveButtons(this));
    this.content.append(this.details, this.picture, this.legend, this.note);
    this.lines = [];
  }

  show() {
    this.lines = largestSeries(this.map.entries, this.filter.value);
    this.picture.setAttribute('height', kSeriesHeight + kSeriesBottom + 8);
    this.scale();
    this.picture.replaceChildren(
        ...this.drawAxes(), ...this.lines.flatMap((line, index) => this.drawLine(line, index)));
    this.legend.replaceChildren(
        ...(this.map.scalar ? [] : this.lines.map((line, index) => this.legendOf(line, index))));
    const more = this.map.keys - this.lines.length;
    this.note.textContent =
        more > 0 ? counted(more, 'more key') + ', with smaller values or left out by the filter' : '';
  }

  // What the picture reaches to, in times, values and pixels.
  scale() {
    const points = this.lines.flatMap(line => line.points);
    const values = points.map(point => point.value).filter(value => value !== null);
    const least = values.reduce((a, b) => Math.min(a, b), Infinity);
    const most = values.reduce((a, b) => Math.max(a, b), -Infinity);
    const hasValues = values.length > 0;
    this.ticks = axisTicks(hasValues ? Math.min(least, 0) : 0, hasValues ? Math.max(most, 0) : 1);
    this.begin = points.reduce((a, {time}) => Math.min(a, time), Infinity);
    this.end = Math.max(points.reduce((a, {time}) => Math.max(a, time), -Infinity), this.begin + 1);
    this.width = Math.max(widthOf(this.picture, 600) - kSeriesLeft - 8, 20);
  }

  x(time) {
    return kSeriesLeft + (time - this.begin) / (this.end - this.begin) * this.width;
  }

  y(value) {
    const low = this.ticks[0];
    const high = this.ticks[this.ticks.length - 1];
    return 6 + (high - value) / (high - low) * kSeriesHeight;
  }

  drawAxes() {
    if (!Number.isFinite(this.begin)) return [];
    const right = kSeriesLeft + this.width;
    const rows = this.ticks.flatMap(
        tick =>
            [draw('line', {x1: kSeriesLeft, x2: right, y1: this.y(tick), y2: this.y(tick), class: 'grid'}),
             draw('text', {x: kSeriesLeft - 8, y: this.y(tick) + 4, 'text-anchor': 'end'}, short(tick)),
    ]);
    const bottom = kSeriesHeight + kSeriesBottom + 2;
    return [
      ...rows,
      draw('text', {x: kSeriesLeft, y: bottom}, seriesClock(this.begin)),
      draw('text', {x: right, y: bottom, 'text-anchor': 'end'}, seriesClock(this.end)),
    ];
  }

  drawLine({points}, index) {
    const stroke = kSeriesColours[index];
    return seriesParts(points).map(part => {
      const places = part.map(({time, value}) => this.x(time).toFixed(1) + ',' + this.y(value).toFixed(1));
      if (places.length === 1) {
        const [cx, cy] = places[0].split(',');
        return draw('circle', {cx, cy, r: 2.5, fill: stroke});
      }
      return draw('polyline', {points: places.join(' '), fill: 'none', stroke, 'stroke-width': 1.8});
    });
  }

  legendOf({key, points}, index) {
    const values = points.filter(({value}) => value !== null);
    const last = values.length ? grouped(values[values.length - 1].value) : '–';
    const colour = make('span', {className: 'colour'});
    colour.style.background = kSeriesColours[index];
    return make('li', {}, colour, keyText(key) + ': ' + last);
  }

  // Shows the values of the interval at a place of the picture.
  tell(x) {
    const time = this.begin + (x - kSeriesLeft) / this.width * (this.end - this.begin);
    const nearest = points => points.reduce(
        (best, point) => !best || Math.abs(point.time - time) < Math.abs(best.time - time) ? point : best, null);
    const found = this.lines.map(line => [line.key, nearest(line.points)]).filter(([, point]) => point);
    if (found.length === 0) return;
    const texts = found.map(
        ([key, {value}]) => (key.length ? keyText(key) + ' ' : '') + (value === null ? 'nothing' : grouped(value)));
    this.details.textContent = seriesClock(found[0][1].time) + '  ' + texts.join(', ');
  }
}

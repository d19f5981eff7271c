// The script of the page of a run: what all views share, the connection, and the margin.
//
// The page gets messages with the maps that have changed (serve/snapshots.h). `state` has the last of each, also while
// the page is paused; views are drawn from it at most five times a second. All text goes into the page as text nodes.
#pragma once

#include <string_view>

namespace espy::serve {

constexpr std::string_view kPageScript = R"(
const pick = (selector, root = document) => root.querySelector(selector);
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value; else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// ---- Numbers

function grouped(value) {
  if (typeof value === 'number' && !Number.isInteger(value)) return value.toPrecision(3);
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',');
}
function short(value) {
  if (Math.abs(value) < 1000) return Number.isInteger(value) ? String(value) : value.toPrecision(3);
  const power = Math.min(Math.floor(Math.log10(Math.abs(value)) / 3), 6);
  return (value / 1000 ** power).toPrecision(3) + ' kMGTPE'[power];
}
function isNumber(value) { return typeof value === 'number' || (typeof value === 'string' && /^-?\d+$/.test(value)); }
function plain(value) {
  if (isNumber(value)) return grouped(value);
  return typeof value === 'string' ? value : JSON.stringify(value);
}

// ---- Saving

function save(name, type, text) {
  const link = make('a', {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
function saveJson(name, value) { save(name + '.json', 'application/json', JSON.stringify(value, null, 1) + '\n'); }
// A picture must show the same elsewhere, so what the style gives it is written into it.
function saveSvg(name, svg) {
  const copy = svg.cloneNode(true), style = getComputedStyle(svg), box = svg.getBoundingClientRect();
  copy.setAttribute('width', box.width);
  copy.setAttribute('height', box.height);
  copy.setAttribute('font-family', 'monospace');
  copy.setAttribute('font-size', '12');
  copy.setAttribute('color', style.color);
  copy.querySelectorAll('text').forEach(text => text.setAttribute('fill', style.color));
  copy.querySelectorAll('[data-dark]').forEach(text => text.setAttribute('fill', '#211f1c'));
  copy.prepend(draw('rect', {width: '100%', height: '100%', fill: getComputedStyle(document.body).backgroundColor}));
  save(name + '.svg', 'image/svg+xml', new XMLSerializer().serializeToString(copy));
}
function fileName(map) { return 'espy-' + (map.name.slice(1).replace(/\W/g, '_') || 'map'); }
function saveButtons(view) {
  const out = [make('button', {type: 'button', textContent: 'JSON', title: 'save this map as JSON',
                               onclick: () => saveJson(fileName(view.map), view.map)})];
  if (view.picture) out.unshift(make('button', {type: 'button', textContent: 'SVG', title: 'save this picture as SVG',
                                                onclick: () => saveSvg(fileName(view.map), view.picture())}));
  return out;
}

// ---- State

const state = {maps: new Map(), views: new Map(), lines: [], status: null, isPaused: false, isEnded: false};
const kMaxLines = 5000, kFrameMs = 200;

function viewOf(map) {
  if (map.stacks) return new FlameView(map);
  if (map.kind === 'hist_t' || map.kind === 'lhist_t') return new HistogramView(map);
  return map.scalar ? new NumberView(map) : new TableView(map);
}
function kindOf(map) { return (map.stacks ? 'stacks ' : '') + map.kind + map.scalar; }

function take(message) {
  // Another run, at the same port.
  if (state.status && message.elapsed < state.status.elapsed) return location.reload();
  state.status = message;
  state.isEnded = message.ended;
  for (const map of message.maps) state.maps.set(map.name, map);
  const last = state.lines.length ? state.lines[state.lines.length - 1][0] : -1;
  // A new connection begins with lines that are known.
  state.lines.push(...message.log.filter(line => line[0] > last));
  if (state.lines.length > kMaxLines) state.lines.splice(0, state.lines.length - kMaxLines);
  for (const [name, map] of state.maps) {
    let view = state.views.get(name);
    if (!view || view.kind !== kindOf(map)) {
      const fresh = viewOf(map);
      fresh.kind = kindOf(map);
      if (view) view.panel.replaceWith(fresh.panel);
      else pick('main').insertBefore(fresh.panel, state.log.panel);
      state.views.set(name, view = fresh);
    }
    view.take(map, message.elapsed);
  }
  schedule();
}

let isScheduled = false, drawnAt = 0;
function schedule() {
  if (isScheduled || state.isPaused) return;
  isScheduled = true;
  setTimeout(() => requestAnimationFrame(show), Math.max(0, drawnAt + kFrameMs - performance.now()));
}
function show() {
  isScheduled = false;
  drawnAt = performance.now();
  for (const view of state.views.values()) if (view.isStale) { view.isStale = false; view.show(); }
  state.log.show();
  showStatus();
}
function showAll() {
  for (const view of state.views.values()) view.isStale = true;
  schedule();
}

// A panel with the map's name, its comment, tools and content.
class View {
  constructor(map, isWide) {
    this.map = map;
    this.tools = make('div', {className: 'tools'});
    this.content = make('div');
    this.panel = make('section', {className: isWide ? 'wide' : '', ariaLabel: map.name},
                      make('h2', {textContent: map.name}), this.seen = make('p', {className: 'help'}), make('p', {className: 'help', textContent: map.help}),
                      this.tools, this.content);
    this.isStale = true;
  }
  take(map) {
    if (map !== this.map) this.isStale = true;
    this.map = map;
    this.seen.textContent = map.seen < 1 ? 'sampled: ' + percent(map.seen) + ' of the events' : '';
  }
}

// ---- The head and the margin

const kLosses = [['missed', 'missed runs'], ['lost_records', 'lost records'], ['full_map', 'updates of full maps'],
                 ['lost_stacks', 'lost stacks'], ['guessed_stacks', 'guessed stacks'], ['cut_strings', 'cut strings'],
                 ['failed_reads', 'failed reads'], ['cut_loops', 'cut loops'], ['bad_values', 'bad values'],
                 ['skipped_probes', 'skipped probes']];
function pairs(rows) {
  return rows.flatMap(([name, value, className = '']) =>
    [make('dt', {textContent: name}), make('dd', {textContent: value, className})]);
}
function percent(share) { return (share * 100).toFixed(share < 0.1 ? 2 : 1) + ' %'; }
function bytes(count) {
  return count < 1048576 ? Math.ceil(count / 1024) + ' KiB' : (count / 1048576).toFixed(1) + ' MiB';
}
function clock(seconds) {
  const two = number => String(Math.floor(number)).padStart(2, '0');
  return (seconds >= 3600 ? Math.floor(seconds / 3600) + ':' : '') + two(seconds / 60 % 60) + ':' + two(seconds % 60);
}
function showConnection(isOpen) {
  const [word, className] = state.isEnded ? ['ended', ''] : !isOpen ? ['disconnected', 'gone'] :
    state.isPaused ? ['paused', ''] : ['live', 'live'];
  pick('.state').textContent = word;
  pick('.state').className = 'state ' + className;
}
function showStatus() {
  const status = state.status;
  if (!status) return;
  const losses = kLosses.filter(([key]) => status.losses[key] > 0);
  pick('h1').textContent = status.script;
  document.title = status.script + ' – espy';
  pick('.elapsed').textContent = clock(status.elapsed);
  pick('.losses').replaceChildren(...pairs(losses.length === 0 ? [['nothing', 'exact', 'exact']] :
    losses.map(([key, name]) => [name, grouped(status.losses[key]), 'lost'])));
  const {cpus = 0, map_bytes = 0, tracer_bytes = 0, programs = []} = status.cost;
  pick('.cost').replaceChildren(...pairs([
    ['probes fired', grouped(status.losses.hits || 0)], ['probes, CPU now', percent(cpus)],
    ['maps', bytes(map_bytes)], ['espy, CPU now', percent(status.cpu_share)],
    ['espy, CPU in all', status.cpu_seconds.toFixed(1) + ' s'], ['espy, memory', bytes(tracer_bytes)],
    ['viewers', status.viewers], ['version', status.version]]));
  pick('.programs').replaceChildren(...pairs(programs.map(([probes, share, ns, events]) =>
    [probes, percent(share) + (ns === null ? '' : ', ' + grouped(ns) + ' ns') + ', ' + short(Math.round(events)) + '/s'])));
  showConnection(isConnected);
}

// ---- Controls

function setPaused(isPaused) {
  state.isPaused = isPaused;
  const button = pick('.pause');
  button.textContent = isPaused ? 'Resume' : 'Pause';
  button.setAttribute('aria-pressed', isPaused);
  showConnection(isConnected);
  if (!isPaused) showAll();
}
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  showAll();
}
const prefersDark = matchMedia('(prefers-color-scheme: dark)');
prefersDark.addEventListener('change', () => setTheme(prefersDark.matches ? 'dark' : 'light'));
function isTyping(target) { return /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName); }
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'Escape' && isTyping(event.target)) event.target.blur();
  if (isTyping(event.target)) return;
  if (event.key === 'p') setPaused(!state.isPaused);
  else if (event.key === 't') pick('.theme').click();
  else if (event.key === '/') { event.preventDefault(); state.log.filter.focus(); }
});

// ---- The connection

let isConnected = false;
function connect() {
  const source = new EventSource('events' + location.search);
  source.onopen = () => { isConnected = true; showConnection(true); };
  source.onerror = () => { isConnected = false; showConnection(false); };
  source.onmessage = event => {
    const message = JSON.parse(event.data);
    if (message.ended) source.close();  // it would connect again
    take(message);
    showConnection(true);
  };
}
function start() {
  setTheme(prefersDark.matches ? 'dark' : 'light');
  pick('.pause').onclick = () => setPaused(!state.isPaused);
  pick('.theme').onclick = () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
  pick('.save').onclick = () => saveJson('espy', {...state.status, maps: [...state.maps.values()], log: state.lines});
  addEventListener('resize', showAll);
  state.log = new LogView();
  pick('main').append(state.log.panel);
  connect();
}
)";

}  // namespace espy::serve

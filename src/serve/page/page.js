// The page of a run: its state, the connection, the head and the margin.
//
// Messages have the maps that have changed (serve/live_server.h). `state` has the last of each, also while the page is
// paused; views are drawn from it at most five times a second.

const kMaxLines = 5000;  // of the log
const kPauseMs = 200;    // between drawings

const state = {
  maps: new Map(),   // by name
  views: new Map(),  // by the name of the map
  lines: [],         // of the log: [number, kind, text]
  log: null,         // a LogView
  status: null,      // the last message
  isPaused: false,
  isEnded: false,
  isConnected: false,
};

// ---- Messages

// The number of the last line of the log; -1 if there is none.
function lastLine(from) {
  return from.lines.length ? from.lines[from.lines.length - 1][0] : -1;
}

// Whether a message is of another run, at the same port.
function isOtherRun(before, message) {
  return before.status !== null && message.elapsed < before.status.elapsed;
}

// Merges a message into `into`, which is a state.
function merge(into, message) {
  into.status = message;
  into.isEnded = message.ended;
  for (const map of message.maps) into.maps.set(map.name, map);
  const last = lastLine(into);
  // A new connection begins with lines that are known.
  into.lines.push(...message.log.filter(([number]) => number > last));
  if (into.lines.length > kMaxLines) into.lines.splice(0, into.lines.length - kMaxLines);
}

function take(message) {
  if (isOtherRun(state, message)) {
    location.reload();
    return;
  }
  const known = state.maps.size;
  merge(state, message);
  for (const map of state.maps.values()) viewOf(map).take(map, message.elapsed);
  if (state.maps.size > known) showContents();
  schedule();
}

// ---- Views

function makeView(map) {
  if (map.stacks) return new FlameView(map);
  if (map.kind === 'tseries_t') return new SeriesView(map);
  if (map.kind === 'hist_t' || map.kind === 'lhist_t') return new HistogramView(map);
  return map.scalar ? new NumberView(map) : new TableView(map);
}

// Maps of equal shapes have views of one kind. A map that was empty can have another shape later.
function shapeOf(map) {
  return (map.stacks ? 'stacks ' : '') + map.kind + map.scalar;
}

// The view of a map, which is on the page: numbers first, what is between two events last, each in the order of the
// script.
function viewOf(map) {
  const present = state.views.get(map.name);
  if (present && present.shape === shapeOf(map)) return present;
  const view = makeView(map);
  view.shape = shapeOf(map);
  state.views.set(map.name, view);
  if (present) {
    present.panel.replaceWith(view.panel);
  } else if (map.scratch) {
    pick('.scratch').append(view.panel);
  } else if (view instanceof NumberView) {
    pick('.numbers').append(view.panel);
  } else {
    pick('main').insertBefore(view.panel, pick('.scratch'));
  }
  return view;
}

// More maps than fit a screen have a list of contents.
const kLeastContents = 7;

function showContents() {
  const names = [...state.maps.keys()];
  pick('.contents').hidden = names.length < kLeastContents;
  pick('.contents').replaceChildren(...names.map(name => makeButton(visible(name), 'go to ' + name, () => goTo(name))));
}

function goTo(name) {
  const view = state.views.get(name);
  if (view.isFolded) view.toggle();
  view.panel.scrollIntoView({block: 'start'});
}

let isScheduled = false;
let drawnAtMs = 0;

// Draws what is stale, soon.
function schedule() {
  if (isScheduled || state.isPaused) return;
  isScheduled = true;
  setTimeout(() => requestAnimationFrame(show), Math.max(0, drawnAtMs + kPauseMs - performance.now()));
}

function show() {
  isScheduled = false;
  drawnAtMs = performance.now();
  for (const view of state.views.values()) {
    if (!view.isStale || view.isFolded) continue;
    view.isStale = false;
    view.show();
  }
  state.log.show();
  showStatus();
}

function showAll() {
  for (const view of state.views.values()) view.isStale = true;
  schedule();
}

// ---- The head and the margin

// A key of the message, its name, and what it means.
const kLosses = [
  ['missed', 'missed runs', 'events that no program saw: counts are too low'],
  ['lost_records', 'lost records', 'lines of the log that are missing'],
  ['lost_updates', 'lost updates', 'keys that had no room: raise max_map_keys'],
  ['lost_stacks', 'lost stacks', 'stacks that are missing'],
  ['uncertain_stacks', 'uncertain stacks', 'stacks that may be wrong or incomplete'],
  ['truncated_strings', 'truncated strings', 'strings longer than max_strlen'],
  ['read_errors', 'read errors', 'failed memory reads, which returned 0'],
  ['stopped_loops', 'stopped loops', 'loops that reached the iteration limit of the kernel'],
  ['bad_values', 'bad values', 'divisions by zero, array indexes out of range'],
  ['over_budget', 'over budget', 'events skipped by --budget'],
  ['skipped_probes', 'skipped probes', 'probes that could not be attached'],
];

function presentLosses(losses) {
  return kLosses.filter(([key]) => losses[key] > 0);
}

// The rows of the margin, for `makePairs`. `losses.reasons`: sentences about what has no number of its own.
function lossRows(losses) {
  const lost = presentLosses(losses);
  const reasons = losses.reasons || [];
  if (lost.length + reasons.length === 0) return [['nothing', 'exact', 'exact']];
  return [
    ...lost.flatMap(([key, name, meaning]) => [[name, grouped(losses[key]), 'lost'], [meaning, '', 'meaning']]),
    ...reasons.map(reason => [reason, '', 'meaning']),
  ];
}

// The badge of the head: its text, and its class.
function lossBadge(losses) {
  const lost = presentLosses(losses).map(([key, name]) => grouped(losses[key]) + ' ' + name);
  const kinds = lost.length + (losses.reasons || []).length;
  if (kinds === 0) return ['exact', 'exact'];
  return [(lost[0] || 'not exact') + (kinds > 1 ? ', and ' + (kinds - 1) + ' more' : ''), 'lost'];
}

function costRows(status) {
  const {cpus = 0, map_bytes: mapBytes = 0, tracer_bytes: tracerBytes = 0} = status.cost;
  return [
    ['probes fired', grouped(status.losses.hits || 0)],
    ['probes, CPU now', percent(cpus)],
    ['maps', byteSize(mapBytes)],
    ['espy, CPU now', percent(status.cpu_share)],
    ['espy, CPU in all', status.cpu_seconds.toFixed(1) + ' s'],
    ['espy, memory', byteSize(tracerBytes)],
    ['viewers', status.viewers],
    ['version', status.version],
  ];
}

// `ns` of a run is null where nothing was measured.
function programRows(programs) {
  return programs.map(([probes, share, ns, runs]) => {
    const time = ns === null ? '' : ', ' + grouped(ns) + ' ns';
    return [probes, percent(share) + time + ', ' + short(Math.round(runs)) + '/s'];
  });
}

// A word for the state of the connection, and the class that gives it a colour.
function connectionWord({isEnded, isConnected, isPaused}) {
  if (isEnded) return ['ended', ''];
  if (!isConnected) return ['disconnected', 'gone'];
  return isPaused ? ['paused', ''] : ['live', 'live'];
}

function showConnection() {
  const [word, className] = connectionWord(state);
  pick('.state').textContent = word;
  pick('.state').className = 'state ' + className;
}

function showStatus() {
  const status = state.status;
  if (!status) return;
  pick('h1').textContent = status.script;
  document.title = status.script + ' – espy';
  pick('.elapsed').textContent = clock(status.elapsed);
  const [badge, className] = lossBadge(status.losses);
  pick('.badge').textContent = badge;
  pick('.badge').className = 'badge ' + className;
  pick('.losses').replaceChildren(...makePairs(lossRows(status.losses)));
  pick('.cost').replaceChildren(...makePairs(costRows(status)));
  pick('.programs').replaceChildren(...makePairs(programRows(status.cost.programs || [])));
  showConnection();
}

// ---- Controls

function setPaused(isPaused) {
  state.isPaused = isPaused;
  const button = pick('.pause');
  button.textContent = isPaused ? 'Resume' : 'Pause';
  button.setAttribute('aria-pressed', isPaused);
  showConnection();
  if (!isPaused) showAll();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  showAll();
}

function switchTheme() {
  setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
}

function saveState() {
  saveJson('espy', {...state.status, maps: [...state.maps.values()], log: state.lines});
}

function takeKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (isTyping) {
    if (event.key === 'Escape') event.target.blur();
  } else if (event.key === 'p') {
    setPaused(!state.isPaused);
  } else if (event.key === 't') {
    switchTheme();
  } else if (event.key === '/') {
    event.preventDefault();
    state.log.filter.focus();
  }
}

// ---- The connection

function setConnected(isConnected) {
  state.isConnected = isConnected;
  showConnection();
}

// The browser connects again by itself. The token, if there is one, is in the address of the page.
function connect() {
  const source = new EventSource('events' + location.search);
  source.onopen = () => setConnected(true);
  source.onerror = () => setConnected(false);
  source.onmessage = event => {
    const message = JSON.parse(event.data);
    if (message.ended) source.close();
    take(message);
    showConnection();
  };
}

function start() {
  const prefersDark = matchMedia('(prefers-color-scheme: dark)');
  const followSystem = () => setTheme(prefersDark.matches ? 'dark' : 'light');
  prefersDark.addEventListener('change', followSystem);
  state.log = new LogView();
  pick('main').append(state.log.panel);
  followSystem();
  pick('.pause').onclick = () => setPaused(!state.isPaused);
  pick('.theme').onclick = switchTheme;
  pick('.save').onclick = saveState;
  pick('.badge').onclick = () => pick('aside').scrollIntoView({block: 'nearest'});
  document.addEventListener('keydown', takeKey);
  addEventListener('resize', showAll);
  connect();
}

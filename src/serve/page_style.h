// The style of the page of a run. Colours are variables, so that dark and light differ in one place.
#pragma once

#include <string_view>

namespace espy::serve {

constexpr std::string_view kPageStyle = R"(
:root {
  --bg: #f6f5f2; --panel: #fff; --ink: #211f1c; --soft: #6b665e; --line: #dedad2; --accent: #b4531a; --bar: #e0813f;
  --good: #2c7a4b; --bad: #b3261e; --row: #f3efe8; --heat: 224, 96, 32;
  color-scheme: light;
}
:root[data-theme=dark] {
  --bg: #17181b; --panel: #1f2125; --ink: #ece9e4; --soft: #a19c94; --line: #36383e; --accent: #f0985a; --bar: #c9692b;
  --good: #6cc08b; --bad: #ff8a80; --row: #26282d; --heat: 255, 150, 80;
  color-scheme: dark;
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0; background: var(--bg); color: var(--ink); font: 14px/1.45 system-ui, sans-serif; }
header { position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; gap: .4rem .8rem; align-items: center;
  padding: .5rem 1rem; background: var(--panel); border-bottom: 1px solid var(--line); }
header h1 { margin: 0; font-size: 1rem; overflow-wrap: anywhere; }
header .state::before { content: ''; display: inline-block; width: .6em; height: .6em; margin-right: .4em;
  border-radius: 50%; background: var(--soft); }
header .state.live::before { background: var(--good); }
header .state.gone::before { background: var(--bad); }
header .space { flex: 1; }
button, select, input { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line);
  border-radius: 6px; padding: .25rem .6rem; min-height: 2rem; }
button { cursor: pointer; }
button:hover { border-color: var(--accent); }
button[aria-pressed=true] { background: var(--accent); border-color: var(--accent); color: var(--panel); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.page { display: grid; grid-template-columns: minmax(0, 1fr) 15rem; gap: 1rem; padding: 1rem; max-width: 110rem;
  margin: 0 auto; }
main { display: grid; gap: 1rem; align-content: start; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); }
section, aside { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: .8rem 1rem;
  min-width: 0; }
section.wide { grid-column: 1 / -1; }
section h2, aside h2 { margin: 0; font-size: 1rem; font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
section .help { margin: .1rem 0 .5rem; color: var(--soft); overflow-wrap: anywhere; }
.tools { display: flex; flex-wrap: wrap; gap: .4rem; margin: .4rem 0; align-items: center; }
.tools input { flex: 1 1 8rem; min-width: 0; }
.tools select { max-width: 100%; }
.number { font-size: 2rem; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; line-height: 1.2; }
.rate, .note { color: var(--soft); font-variant-numeric: tabular-nums; }
.scroll { max-height: 24rem; overflow: auto; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { position: sticky; top: 0; background: var(--panel); text-align: left; padding: 0; }
th button { border: 0; padding: .2rem .4rem; width: 100%; text-align: inherit; color: var(--soft); min-height: 0; }
th.value, td.value { text-align: right; }
td { padding: .15rem .4rem; border-top: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere;
  font-family: ui-monospace, monospace; font-size: .85rem; white-space: pre-wrap; }
td.value { white-space: nowrap; }
td.share { width: 20%; min-width: 2.5rem; }
td.share div { height: .8em; margin-top: .25em; border-radius: 2px; background: var(--bar); }
tbody tr:hover { background: var(--row); }
svg { display: block; width: 100%; font: 12px ui-monospace, monospace; }
svg text { fill: currentColor; }
.details { min-height: 1.5em; overflow-wrap: anywhere; color: var(--soft); }
.lines { max-height: 22rem; overflow: auto; margin: 0; padding: 0; list-style: none;
  font: .85rem/1.4 ui-monospace, monospace; }
.lines li { white-space: pre-wrap; overflow-wrap: anywhere; padding: 0 .3rem; }
.lines li:hover { background: var(--row); }
.lines .errorf, .lines .runtime_error { color: var(--bad); }
.lines .warnf { color: var(--accent); }
aside { align-self: start; position: sticky; top: 4rem; }
aside dl { display: grid; grid-template-columns: 1fr auto; gap: .1rem .6rem; margin: .4rem 0 1rem; }
aside dt { color: var(--soft); }
aside dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; }
aside .programs { grid-template-columns: minmax(0, 1fr); }
aside .programs dt { overflow-wrap: anywhere; }
aside .lost { color: var(--bad); font-weight: 600; }
aside .exact { color: var(--good); }
@media (max-width: 52rem) {
  .page { grid-template-columns: minmax(0, 1fr); padding: .6rem; gap: .6rem; }
  main { gap: .6rem; }
  header { padding: .4rem .6rem; gap: .3rem .5rem; }
  header button { padding: .25rem .5rem; }
  aside { position: static; }
  section, aside { padding: .6rem; }
  button, select, input { min-height: 2.4rem; }
}
)";

}  // namespace espy::serve

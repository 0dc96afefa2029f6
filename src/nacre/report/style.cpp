#include "nacre/report/sections.h"

namespace nacre {

const char* const kReportStyle = R"css(
:root { --paper: #fff; --ink: #1b1f24; --soft: #57606a; --rule: #d0d7de; --band: #f3f5f7; --link: #0550ae;
  --c0: #0068a8; --c1: #b84a00; --c2: #00755a; --c3: #a3327a; --c4: #6b4fbb; --c5: #8a6a00; --c6: #3b6e8f; --c7: #555; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181d; --ink: #e6e9ec; --soft: #a4adb7; --rule: #3a434d; --band: #1d232a; --link: #7cb7ff;
    --c0: #56b4e9; --c1: #f0883e; --c2: #2fc49a; --c3: #e58fc4; --c4: #b3a1f5; --c5: #e0c14a; --c6: #8fbcd4; --c7: #b5b5b5; }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
body { margin: 0 auto; max-width: 1500px; padding: 0 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 1rem; top: 0.5rem; background: var(--paper); padding: 0.3rem; }
h1 { font-size: 1.6rem; margin: 1rem 0 0.2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2rem 0 0.6rem; border-bottom: 1px solid var(--rule); padding-bottom: 0.2rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 0.4rem; overflow-wrap: anywhere; }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: 0.2rem 1rem; padding: 0; margin: 0.4rem 0; }
nav a { display: inline-block; padding: 0.2rem 0; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.25rem 0.9rem 0.25rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
thead th { border-bottom: 2px solid var(--rule); white-space: nowrap; }
tbody th { font-weight: 600; }
td.n, th.n { text-align: right; white-space: nowrap; }
td.w { white-space: nowrap; }
tr.differs > * { background: var(--band); }
td { overflow-wrap: break-word; max-width: 40rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 1.2rem; }
figure { margin: 0; min-width: 0; }
figcaption { font-weight: 600; margin-bottom: 0.2rem; }
svg { width: 100%; height: auto; display: block; }
svg .grid { stroke: var(--rule); }
svg .mark { fill: var(--soft); font-size: 13px; }
svg .line { fill: none; stroke: currentColor; stroke-width: 2; }
svg circle.line { fill: currentColor; }
svg .cursor { stroke: var(--soft); stroke-dasharray: 3 3; }
svg .cursor[hidden] { display: none; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); }
.c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); } .c7 { color: var(--c7); }
svg .c1 { stroke-dasharray: 7 3; } svg .c2 { stroke-dasharray: 2 3; } svg .c3 { stroke-dasharray: 9 3 2 3; }
svg .c4 { stroke-dasharray: 12 4; } svg .c5 { stroke-dasharray: 4 4; } svg .c6 { stroke-dasharray: 1 4; }
.picture { margin: 1rem 0; }
.picture svg { max-width: none; }
.picture .scroll { max-height: 90vh; overflow: auto; }
.picture img { width: min(100%, 640px); height: auto; background: #fff; }
svg text { fill: var(--ink); font-size: 13px; }
svg .box { fill: var(--band); stroke: var(--soft); rx: 4px; }
svg .own { fill: currentColor; }
svg .box.once { stroke-dasharray: 4 3; }
svg .link { fill: none; stroke: var(--soft); }
svg .time { fill: var(--c0); opacity: 0.45; }
svg .floor { fill: var(--c0); }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 0.1rem 1rem; padding: 0; margin: 0.3rem 0; font-size: 0.9rem; }
.key { display: inline-block; width: 0.9rem; height: 0.9rem; background: currentColor; border-radius: 2px; margin-right: 0.35rem;
  vertical-align: -0.1rem; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
pre { margin: 0; font: 0.85rem/1.4 ui-monospace, monospace; }
.readout { min-height: 1.5em; margin: 0; font-size: 0.9rem; color: var(--soft); }
.bars dl { display: grid; grid-template-columns: minmax(6rem, auto) 1fr; gap: 0.35rem 0.8rem; margin: 0; }
.bars dt { overflow-wrap: anywhere; }
.bars dd { margin: 0; display: flex; align-items: center; gap: 0.6rem; white-space: nowrap; min-width: 0; }
.bar { display: flex; flex: 1 1 auto; height: 1.2rem; background: var(--band); min-width: 0; }
.part { background: currentColor; height: 100%; border-right: 1px solid var(--paper); print-color-adjust: exact;
  -webkit-print-color-adjust: exact; }
details { margin: 0.6rem 0; }
summary { cursor: pointer; padding: 0.2rem 0; }
.only-differences tr:not(.differs) { display: none; }
.only-differences thead tr { display: table-row; }
p.note { color: var(--soft); margin: 0.3rem 0; }
@media (max-width: 600px) {
  body { padding: 0 0.75rem 2rem; }
  .bars dl { grid-template-columns: 1fr; }
}
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
@media print {
  :root { --paper: #fff; --ink: #000; --soft: #333; --rule: #999; --band: #eee; --link: #000; }
  body { font-size: 10pt; max-width: none; padding: 0; }
  nav, .skip, .readout, .controls { display: none; }
  figure, tr, p.note { break-inside: avoid; }
  h2, h3, figcaption, p.note, summary { break-after: avoid; }
  .charts { grid-template-columns: 1fr 1fr; }
  .scroll, .picture .scroll { overflow: visible; max-width: none; max-height: none; }
  .picture svg { max-width: 100%; }
  .picture svg.page { max-height: 220mm; }
  table { font-size: 8pt; }
  th, td, thead th, th.n { white-space: normal; overflow-wrap: anywhere; padding-right: 0.5rem; }
  th.n { overflow-wrap: normal; }
  td.n, td.w { white-space: nowrap; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 7pt; }
  tr.differs > * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
)css";

// This script shows the values of a chart that are nearest to the pointer. The arrow keys move to
// other values.
const char* const kReportScript = R"js(
'use strict';
for (const svg of document.querySelectorAll('svg[data-x]')) {
  const [low, high, from, to] = svg.dataset.x.split(' ').map(Number);
  const lines = [...svg.querySelectorAll('.line')].map(line => ({
    name: line.dataset.name,
    points: line.dataset.values.split(' ').map(pair => pair.split(',').map(Number))}));
  const xs = [...new Set(lines.flatMap(line => line.points.map(point => point[0])))].sort((a, b) => a - b);
  const cursor = svg.querySelector('.cursor');
  const readout = svg.parentElement.querySelector('.readout');
  let at = xs.length - 1;
  const show = () => {
    const x = from + (xs[at] - low) / (high - low) * (to - from);
    cursor.setAttribute('x1', x);
    cursor.setAttribute('x2', x);
    cursor.removeAttribute('hidden');
    const values = lines.map(line => [line.name, line.points.find(point => point[0] === xs[at])])
      .filter(([, point]) => point).map(([name, point]) => name + ' ' + point[1]);
    readout.textContent = 'epoch ' + xs[at] + ': ' + values.join(', ');
  };
  svg.addEventListener('pointermove', event => {
    const box = svg.getBoundingClientRect();
    const place = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
    const value = low + (place - from) / (to - from) * (high - low);
    at = xs.reduce((best, x, i) => Math.abs(x - value) < Math.abs(xs[best] - value) ? i : best, 0);
    show();
  });
  svg.addEventListener('keydown', event => {
    const steps = {ArrowLeft: -1, ArrowRight: 1, Home: -xs.length, End: xs.length};
    if (!(event.key in steps)) return;
    event.preventDefault();
    at = Math.min(xs.length - 1, Math.max(0, at + steps[event.key]));
    show();
  });
}
for (const box of document.querySelectorAll('.controls input')) {
  box.addEventListener('change', () =>
    document.getElementById(box.dataset.table).classList.toggle('only-differences', box.checked));
}
window.addEventListener('beforeprint', () => { for (const d of document.querySelectorAll('details')) d.open = true; });
)js";

}  // namespace nacre

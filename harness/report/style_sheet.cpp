#include "harness/report/page.h"

namespace warmleg::report {

// Colours pass 4.5:1 for text and 3:1 for marks on their background, and no mark is told apart by colour
// alone.
const char* const kStyleSheet = R"css(
:root {
  color-scheme: light dark;
  --paper: #ffffff; --panel: #f6f7f9; --ink: #1b1f24; --soft: #5b626d; --line: #dfe2e7; --faint: #eceef1;
  --plain: #2c6fb3; --draft: #bf5a12; --out: #9aa1ab; --good: #1e7a46; --warn: #8a6100; --bad: #b8322a; --note: #5a4fb0;
  --c1: #2c6fb3; --c2: #bf5a12; --c3: #1e7a46; --c4: #8b4a9c; --c5: #6b7280; --c6: #a3344d;
  --face: system-ui, -apple-system, "Segoe UI", "Noto Sans", Cantarell, "Liberation Sans", "DejaVu Sans", sans-serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", "Liberation Mono", "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171b; --panel: #1c2026; --ink: #e7e9ec; --soft: #a2a9b4; --line: #323842; --faint: #252a31;
    --plain: #6fb0ee; --draft: #f09a55; --out: #6d7580; --good: #5fc98d; --warn: #e0b04a; --bad: #f08078; --note: #aba1f5;
    --c1: #6fb0ee; --c2: #f09a55; --c3: #5fc98d; --c4: #d196e2; --c5: #a9b0bb; --c6: #f08aa0;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body {
  margin: 0 auto; padding: 2.5rem 1.5rem 4rem; max-width: 76rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 var(--face); font-variant-numeric: tabular-nums;
}
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--paper); padding: .25rem .5rem; }
a { color: inherit; text-decoration-color: var(--out); text-underline-offset: .2em; }
a:hover { text-decoration-color: currentColor; }
header .over { font-size: .8125rem; letter-spacing: .06em; text-transform: uppercase; color: var(--soft); }
h1 { font-size: 2rem; line-height: 1.2; margin: .25rem 0 .75rem; font-weight: 650; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 3rem 0 .75rem; font-weight: 650; padding-top: 1.25rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.0625rem; margin: 2rem 0 .5rem; font-weight: 650; }
p { margin: .5rem 0; max-width: 48rem; }
.lead { font-size: 1.0625rem; }
.soft { color: var(--soft); }
.small { font-size: .875rem; }
code, .code { font-family: var(--mono); font-size: .875em; overflow-wrap: anywhere; }
pre { font: .8125rem/1.5 var(--mono); background: var(--panel); border: 1px solid var(--line); border-radius: 6px;
  padding: .75rem 1rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: 1.5rem 0 0; font-size: .875rem; color: var(--soft); }
footer { margin-top: 4rem; padding-top: 1rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .8125rem; }
.badge { display: inline-block; font-size: .8125rem; font-weight: 650; letter-spacing: .04em; text-transform: uppercase;
  border: 1.5px solid currentColor; border-radius: 4px; padding: .05rem .5rem; vertical-align: middle; white-space: nowrap; }
.badge.tag { font-size: .6875rem; padding: 0 .35rem; border-width: 1px; }
.good { color: var(--good); } .warn { color: var(--warn); } .bad { color: var(--bad); } .note { color: var(--note); }
.badge.plain { color: var(--soft); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: 1px; margin: 1.5rem 0 .5rem;
  background: var(--line); border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
.card { background: var(--paper); padding: .875rem 1rem; }
.card .name { font-size: .8125rem; color: var(--soft); }
.card .value { font-size: 1.625rem; line-height: 1.25; font-weight: 600; letter-spacing: -.01em; }
.card .note { font-size: .8125rem; color: var(--soft); }
.remark { border-left: 3px solid var(--out); background: var(--panel); padding: .625rem 1rem; margin: .75rem 0; color: var(--ink);
  border-radius: 0 6px 6px 0; max-width: 62rem; }
.remark.bad { border-color: var(--bad); } .remark.warn { border-color: var(--warn); }
.remark.good { border-color: var(--good); } .remark.note { border-color: var(--note); }
.remark p { margin: .125rem 0; max-width: none; }
.figure { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1rem; margin: 1rem 0 2rem; }
@media (min-width: 66rem) { .figure { grid-template-columns: minmax(0, 5fr) minmax(17rem, 3fr); gap: 1.5rem; align-items: start; }
  .wide .figure { grid-template-columns: minmax(0, 1fr); } }
figure { margin: 0; min-width: 0; }
.plot { overflow-x: auto; }
.plot svg { display: block; width: 100%; min-width: 34rem; height: auto; }
figcaption { font-size: .8125rem; color: var(--soft); margin-top: .375rem; max-width: 48rem; }
.key { white-space: nowrap; margin-right: .75rem; color: var(--ink); }
.key svg { width: .75rem; height: .75rem; margin-right: .35rem; vertical-align: -.05rem; }
.table { overflow-x: auto; min-width: 0; }
.table.scroll { max-height: 32rem; overflow-y: auto; border-bottom: 1px solid var(--line); }
.table:focus-visible, a:focus-visible, summary:focus-visible { outline: 2px solid var(--plain); outline-offset: 2px; }
table { border-collapse: collapse; font-size: .8125rem; line-height: 1.4; width: 100%; }
caption { text-align: left; color: var(--soft); padding: 0 0 .375rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--faint); font-weight: 400; }
thead th { color: var(--soft); border-bottom: 1px solid var(--line); background: var(--paper); vertical-align: bottom; }
.scroll thead th { position: sticky; top: 0; }
.n { text-align: right; white-space: nowrap; }
tr.out > * { color: var(--soft); }
tr.out > *:first-child { box-shadow: inset 3px 0 0 var(--out); padding-left: .625rem; }
tr.strong > * { font-weight: 600; }
details { border: 1px solid var(--line); border-radius: 8px; padding: 0 1rem; margin: .75rem 0; }
summary { cursor: pointer; padding: .625rem 0; font-weight: 600; }
details[open] { padding-bottom: 1rem; }
/* plots */
svg text { font-family: var(--face); }
svg .label, svg .unit { font-size: 11.5px; fill: var(--soft); }
svg .name { font-size: 12px; fill: var(--ink); }
svg .end { text-anchor: end; } svg .middle { text-anchor: middle; }
svg .loud { font-weight: 650; }
svg .grid { stroke: var(--faint); } svg .axis { stroke: var(--out); } svg .zero { stroke: var(--soft); }
svg .split { stroke: var(--line); stroke-dasharray: 2 3; }
svg .band { fill: var(--faint); }
svg .plain { fill: var(--plain); } svg .draft { fill: var(--draft); }
svg .faint { opacity: .35; }
svg .hollow { fill: var(--paper); stroke: var(--out); stroke-width: 1.5; }
svg .cross { fill: none; stroke: var(--out); stroke-width: 1.75; }
svg rect.outbar { fill: var(--out); }
svg .tint-plain { fill: var(--plain); opacity: .10; } svg .tint-draft { fill: var(--draft); opacity: .10; }
svg .tint-out { fill: var(--out); opacity: .14; }
svg .line { fill: none; stroke: var(--ink); stroke-width: 1.4; stroke-linejoin: round; }
svg .line.dot { fill: var(--ink); stroke: none; }
svg .roof { stroke: var(--bad); stroke-width: 2; }
svg .s1 { stroke: var(--c1); } svg .s2 { stroke: var(--c2); } svg .s3 { stroke: var(--c3); } svg .s4 { stroke: var(--c4); }
svg .s5 { stroke: var(--c5); } svg .s6 { stroke: var(--c6); }
svg .f1 { fill: var(--c1); } svg .f2 { fill: var(--c2); } svg .f3 { fill: var(--c3); } svg .f4 { fill: var(--c4); }
svg .f5 { fill: var(--c5); } svg .f6 { fill: var(--c6); }
svg .curve { fill: none; stroke-width: 2; }
svg .process { fill: var(--out); opacity: .75; }
svg .mgood { fill: var(--good); } svg .mbad { fill: var(--bad); } svg .mwarn { fill: var(--warn); } svg .msoft { fill: var(--soft); }
svg .lgood { stroke: var(--good); } svg .lbad { stroke: var(--bad); } svg .lwarn { stroke: var(--warn); } svg .lsoft { stroke: var(--soft); }
svg .interval { stroke-width: 2.5; }
svg .onbar { font-size: 11.5px; fill: var(--paper); text-anchor: middle; }
@media print {
  :root { --paper: #fff; --panel: #f6f7f9; --ink: #000; --soft: #444; --line: #ccc; --faint: #e6e6e6; --plain: #2c6fb3; --draft: #bf5a12;
    --out: #9aa1ab; --good: #1e7a46; --warn: #8a6100; --bad: #b8322a; --note: #5a4fb0;
    --c1: #2c6fb3; --c2: #bf5a12; --c3: #1e7a46; --c4: #8b4a9c; --c5: #6b7280; --c6: #a3344d; }
  body { font-size: 10pt; max-width: none; padding: 0; -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  nav, .skip { display: none; }
  .table.scroll { max-height: none; overflow: visible; }
  .table, .plot { overflow: visible; }
  .plot svg { min-width: 0; }
  .figure { grid-template-columns: minmax(0, 1fr); }
  figure, tr, .card, .remark { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  details > *:not(summary) { display: block; }
}
)css";

}  // namespace warmleg::report

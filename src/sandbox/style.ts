/** The pages' look. A constant rather than a file of its own, because the compiler copies no other files. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --paper: #fcfcfa;
  --card: #ffffff;
  --ink: #1f2428;
  --soft: #667078;
  --line: #e3e5e3;
  --accent: #0b6b61;
  --wash: #eef5f3;
  --mono: ui-monospace, "SF Mono", "Cascadia Code", "DejaVu Sans Mono", Menlo, Consolas, monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #16181b; --card: #1d2024; --ink: #e4e6e8; --soft: #98a1a9;
    --line: #30353a; --accent: #62c9b9; --wash: #1f2c2c;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", "Helvetica Neue", "Noto Sans", sans-serif;
}
header, main { max-width: 62rem; margin: 0 auto; padding: 0 1.5rem; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .25rem 1rem; padding-block: 1.25rem; }
header a { color: var(--ink); font-weight: 650; text-decoration: none; }
header span { color: var(--soft); font-size: .875rem; }
main { padding-bottom: 3rem; }
a { color: var(--accent); text-underline-offset: .2em; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 1rem 0 .5rem; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 1.0625rem; margin: 2.25rem 0 .75rem; }
.soft { color: var(--soft); }
.facts { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: 0 0 .75rem; color: var(--soft); font-size: .9375rem; }
.facts b { color: var(--ink); font-weight: 550; }
.tag {
  display: inline-block; margin: .1rem .3rem .1rem 0; padding: .05rem .6rem; border-radius: 1rem;
  background: var(--wash); color: var(--accent); font-size: .8125rem; overflow-wrap: anywhere;
}
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
.empty { padding: 3.5rem 1.5rem; text-align: center; color: var(--soft); }
.empty b { display: block; margin-bottom: .25rem; color: var(--ink); font-size: 1.125rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .45rem .9rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { font-weight: 600; }
.list { overflow-x: auto; }
.list table { width: 100%; font-size: .9375rem; }
.list thead th { color: var(--soft); font-size: .8125rem; font-weight: 500; }
.list tbody tr:hover { background: var(--wash); }
.list tbody tr:last-child td { border-bottom: 0; }
.list td a { margin-right: .4rem; color: var(--ink); font-weight: 500; text-decoration: none; overflow-wrap: anywhere; }
.list td a:hover { color: var(--accent); text-decoration: underline; }
.fixed { width: 1%; white-space: nowrap; color: var(--soft); }
.count { width: 1%; text-align: right; }
nav { display: flex; justify-content: space-between; gap: 1rem; margin: 1rem 0; font-size: .9375rem; color: var(--soft); }
.content { padding: .25rem 1.5rem; overflow-x: auto; overflow-wrap: break-word; }
.content h1, .content h2, .content h3 { font-size: 1.125rem; margin: 1.25rem 0 .5rem; }
.content table { margin: 1rem 0; font-size: .9375rem; }
.content thead th, .content tr:first-child th { border-bottom: 2px solid var(--line); }
.content pre, .content code { font-family: var(--mono); font-size: .875em; }
.content pre { overflow-x: auto; }
.comment { margin-bottom: 1rem; overflow: hidden; }
.comment h3 {
  margin: 0; padding: .5rem 1rem; border-bottom: 1px solid var(--line);
  color: var(--soft); font-size: .8125rem; font-weight: 400;
}
.comment pre {
  margin: 0; padding: .85rem 1rem; overflow-x: auto; white-space: pre; tab-size: 8;
  font: .84375rem/1.5 var(--mono);
}
@media (max-width: 40rem) { .wide { display: none; } header, main { padding-inline: 1rem; } }
`;

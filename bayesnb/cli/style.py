"""How the page looks: light or dark as the reader's system is, on screens of any width, and on paper."""

STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --soft: #57606a; --line: #d8dee4; --strong: #8c959f; --page: #fff;
  --box: #f3f6fa; --mark: #0072b2; --note: #8a4b00; --link: #0757a8; }
@media (prefers-color-scheme: dark) { :root { --text: #e2e6ea; --soft: #a4adb7; --line: #343b44; --strong: #6b7580;
  --page: #14181d; --box: #1d232a; --mark: #56b4e9; --note: #e6b265; --link: #79b8ff; } }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 64rem;
  margin: 0 auto; padding: 2rem 1.25rem 4rem; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; text-wrap: balance; }
h2 { font-size: 1.35rem; margin: 3.5rem 0 .5rem; border-top: 2px solid var(--line); padding-top: 1.2rem; }
h3 { font-size: 1.05rem; margin: 2.5rem 0 .3rem; }
p, ul { max-width: 46rem; } a { color: var(--link); } .means, .run { color: var(--soft); } .note { color: var(--note); }
code { font: .85em/1.5 ui-monospace, monospace; } nav { max-width: 46rem; font-size: .9rem; line-height: 1.9; }
pre span { white-space: nowrap; }
nav a { margin-right: 1.1rem; }
pre { background: var(--box); padding: .5rem .75rem; border-radius: 6px; margin: .4rem 0; white-space: pre-wrap;
  overflow-wrap: anywhere; }
.conclusion { background: var(--box); border-left: 4px solid var(--mark); border-radius: 0 6px 6px 0; max-width: 48rem;
  padding: .25rem 1.1rem .75rem; margin: 1.2rem 0; }
.conclusion h3 { margin: .8rem 0 .2rem; } .conclusion p { margin: .5rem 0; } .conclusion .verdict { font-weight: 600; }
.conclusion ul { margin: .3rem 0; padding-left: 1.2rem; } .conclusion pre { background: var(--page); }
/* A shadow at an end tells that there is more, and goes with it. */
.wide { overflow-x: auto; max-width: 100%; margin: .8rem 0; background:
  linear-gradient(to right, var(--page) 30%, transparent) 0 / 2.5rem 100% no-repeat local,
  linear-gradient(to left, var(--page) 30%, transparent) 100% / 2.5rem 100% no-repeat local,
  linear-gradient(to right, var(--strong), transparent) 0 / .6rem 100% no-repeat,
  linear-gradient(to left, var(--strong), transparent) 100% / .6rem 100% no-repeat; }
table { border-collapse: collapse; font-size: .8rem; line-height: 1.4; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; text-align: right; vertical-align: top; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; border-bottom: 2px solid var(--strong); }
.name { text-align: left; }
.long { white-space: normal; overflow-wrap: anywhere; min-width: 14rem; max-width: 26rem; }
figure { margin: .8rem 0; max-width: 100%; overflow-x: auto; }
img { display: block; max-width: 100%; height: auto; background: #fff; padding: 6px; border-radius: 6px; }
@media (max-width: 40rem) { body { padding: 1.2rem .9rem 3rem; } h1 { font-size: 1.3rem; } h2 { font-size: 1.2rem; }
  .conclusion { padding: .1rem .8rem .5rem; }
  th, td { padding: .25rem .45rem; } }
@media print {
  h2 { break-before: page; } figure, table, .conclusion { break-inside: avoid; } .wide { overflow: visible; }
}
"""

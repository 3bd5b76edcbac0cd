"""The looks of a page: light and dark, narrow and wide, on a screen and on paper."""

CSS = """
:root {
  color-scheme: light dark;
  --ground: #ffffff; --card: #f6f7f9; --ink: #1f2328; --soft: #57606a; --line: #d5d9de; --link: #0059a3;
  --shade: #1f232833;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ground: #14171c; --card: #1c2027; --ink: #e4e8ed; --soft: #a2abb6; --line: #363c45; --link: #7cc0ff;
    --shade: #000000aa;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 1rem/1.65 system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif;
  overflow-wrap: break-word;
}
.frame { max-width: 76rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
header, main { min-width: 0; }
main:focus { outline: none; }
main > section:first-child > h2 { margin-top: 1.5rem; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: 1rem; padding: .5rem 1rem; background: var(--ground); z-index: 3; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; border-radius: 2px; }
a { color: var(--link); text-underline-offset: .15em; }
h1, h2, h3 { line-height: 1.25; text-wrap: balance; font-weight: 650; }
h1 { font-size: clamp(1.7rem, 4vw + .8rem, 2.5rem); margin: 1rem 0 .75rem; letter-spacing: -.015em; }
h2 { font-size: 1.55rem; margin: 4rem 0 1rem; padding-top: 1.25rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.12rem; margin: 2.25rem 0 .6rem; }
p, ul, ol { max-width: 44rem; margin: .7rem 0; }
li { margin: .3rem 0; }
.lead { font-size: 1.15rem; color: var(--soft); }
strong { font-weight: 650; }
code, pre { font: .88em/1.5 ui-monospace, "SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
code { background: var(--card); padding: .1em .3em; border-radius: 4px; }
pre {
  background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .8rem 1rem; overflow-x: auto;
}
pre code { background: none; padding: 0; }
nav { margin: 2rem 0; padding: .9rem 1.1rem; background: var(--card); border-radius: 10px; font-size: .95rem; }
nav h2 { all: unset; display: block; font-weight: 650; margin-bottom: .35rem; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li { margin: 0; }
nav a { text-decoration: none; display: block; padding: .22rem 0; }
nav a:hover { text-decoration: underline; }
figure { margin: 1.4rem 0; min-width: 0; }
figcaption { font-size: .92rem; color: var(--soft); max-width: 44rem; margin: .5rem 0; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 23rem), 1fr)); gap: 1.2rem; }
.pictures { grid-auto-flow: dense; margin: 1.4rem 0; }
.pictures figure { margin: 0; }
.pictures .wide { grid-column: 1 / -1; }
.card { background: var(--ground); border: 1px solid var(--line); border-radius: 10px; padding: .6rem; }
.card img { display: block; width: 100%; height: auto; margin: 0 auto; }
.wide .card { overflow-x: auto; }
.wide .card img { min-width: 33rem; }
.film .card img { image-rendering: pixelated; width: auto; max-width: 100%; }
.film label { display: inline-block; margin-top: .4rem; font-size: .9rem; cursor: pointer; }
.film .still, .film:has(:checked) .moving { display: none; }
.film:has(:checked) .still { display: block; }
.scroll {
  overflow-x: auto; border: 1px solid var(--line); border-radius: 10px;
  background:
    linear-gradient(to left, var(--ground) 40%, transparent) right / 3rem 100% no-repeat local,
    linear-gradient(to left, var(--shade), transparent) right / .9rem 100% no-repeat scroll;
}
table { border-collapse: separate; border-spacing: 0; font-size: .875rem; width: 100%; line-height: 1.4; }
th, td { padding: .42rem .65rem; text-align: left; white-space: nowrap; border-bottom: 1px solid var(--line); }
tbody tr:last-child > * { border-bottom: 0; }
thead th { background: var(--card); font-weight: 600; vertical-align: bottom; }
tbody th { font-weight: 500; background: var(--ground); }
tr > :first-child { position: sticky; left: 0; z-index: 1; border-right: 1px solid var(--line); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { user-select: all; }
td.long, th.long { white-space: normal; min-width: 13rem; }
.source { font-size: .85rem; color: var(--soft); margin: .5rem 0 0; max-width: none; }
footer { margin-top: 4rem; color: var(--soft); font-size: .9rem; }
@media (max-width: 30rem) {
  th, td { padding: .38rem .55rem; }
  table { font-size: .82rem; }
  th.wraps { white-space: normal; min-width: 8rem; }
}
@media screen and (min-width: 68rem) {
  .frame { display: grid; grid-template-columns: 13.5rem minmax(0, 1fr); gap: 0 3rem; padding-top: 2.5rem; }
  header, main { grid-column: 2; }
  nav {
    grid-area: 1 / 1 / span 2 / 2; position: sticky; top: 1.5rem; align-self: start; margin: 0;
    max-height: calc(100vh - 3rem); overflow-y: auto;
  }
  h1 { margin-top: 0; }
}
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } .film label { display: none; } }
@media print {
  :root { color-scheme: light; }
  body { font-size: 9.5pt; line-height: 1.45; }
  .frame { max-width: none; padding: 0; }
  nav, .skip, .film label, .film .moving { display: none; }
  .film .still { display: block; }
  h2 { margin-top: 1.5rem; }
  h2, h3, figcaption { break-after: avoid; }
  figure:not(.table), tr, pre { break-inside: avoid; }
  thead { display: table-header-group; }
  .pictures { grid-template-columns: 1fr 1fr; }
  .scroll, .wide .card, pre { overflow: visible; background: none; }
  .wide .card img { min-width: 0; }
  table { font-size: 7.5pt; }
  th, td { padding: .15rem .3rem; white-space: normal; }
  tr > :first-child { position: static; }
  a { color: inherit; text-decoration: none; }
}
"""

FIGURE_CSS = """
:root { --ground: #ffffff; --ink: #1f2328; --soft: #57606a; --line: #d5d9de; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ground: #14171c; --ink: #e4e8ed; --soft: #a2abb6; --line: #363c45; }
}
"""
"""For a figure inside a page: the names of the colours that `drawing` writes as numbers."""

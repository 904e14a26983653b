"""The frame of an HTML report: everything inline, light and dark by the reader's setting."""

from __future__ import annotations

from string import Template

__all__ = ["PAGE"]

PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<style>
:root { --ink: #1f2328; --soft: #59636e; --paper: #fff; --card: #f6f8fa; --line: #d1d9e0; --link: #0969da;
  --good: #1a7f37; --bad: #b35900; --broken: #cf222e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9198a1; --paper: #0d1117; --card: #151b23; --line: #3d444d; --link: #4493f8;
    --good: #3fb950; --bad: #e3933a; --broken: #f85149; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 4rem; color: var(--ink); background: var(--paper);
  font: 15px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; }
h2 { margin: 3rem 0 1rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem; }
h3 { margin: 0 0 .6rem; font-size: 1.05rem; }
h3 span:not(.badge) { font-weight: 400; color: var(--soft); }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
p { margin: .4rem 0; }
code { font: .88em ui-monospace, monospace; background: var(--card); padding: .1em .3em; border-radius: 4px; }
section { margin: 1.2rem 0; padding: 1rem 1.2rem; border: 1px solid var(--line); border-radius: 8px; }
figure { margin: .8rem 0; }
figure svg { max-width: 100%; height: auto; display: block; color: var(--ink); }
figure svg text { font-family: system-ui, sans-serif !important; }
table { border-collapse: collapse; font-size: .86rem; }
th, td { padding: .25rem .7rem .25rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
.n { text-align: right; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
.findings { width: 100%; }
.told { border-left: 3px solid var(--line); padding-left: .8rem; color: var(--soft); }
.facts { color: var(--soft); font-size: .8rem; }
summary { cursor: pointer; color: var(--soft); margin: .6rem 0 .3rem; font-size: .86rem; }
.badge { display: inline-block; padding: 0 .5em; border: 1px solid currentColor; border-radius: 1em; font-size: .78rem;
  font-weight: 600; }
.badge.holds { color: var(--good); } .badge.differs { color: var(--bad); } .badge.failed { color: var(--broken); }
.badge.none { color: var(--soft); }
</style>
</head>
<body>
<h1>$title</h1>
<p>$introduction</p>
<div class="wide">$overview</div>
$sections
</body>
</html>
""")

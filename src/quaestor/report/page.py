"""One self-contained HTML page: no network, light and dark, phone and print."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

STYLE = """
:root{--ink:#1d2129;--soft:#5c6470;--paper:#fff;--panel:#f5f6f8;--rule:#d9dde3;--mark:#1f5fbf;--warm:#c2410c;
--on-pale:#000;--on-middle:#000;--on-full:#fff}
@media (prefers-color-scheme:dark){:root{--ink:#e8eaee;--soft:#a2abb8;--paper:#14171c;--panel:#1d222a;--rule:#343b46;
--mark:#7fb0ff;--warm:#ff9d6b;--on-pale:#fff;--on-middle:#000;--on-full:#000}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.2rem;max-width:68rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
h1{font-size:1.6rem;margin:.2rem 0}h2{font-size:1.2rem;margin:2.2rem 0 .5rem;border-bottom:1px solid var(--rule)}
h3{font-size:1rem;margin:1.2rem 0 .4rem}
p.note,small,.small{color:var(--soft);font-size:.85rem}
nav a{margin-right:1rem;color:var(--mark)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.92rem}
th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
th:first-child,td:first-child{text-align:left}th{color:var(--soft);font-weight:600}
.wrap td{white-space:normal;text-align:left;min-width:6rem}
.flow{display:flex;flex-wrap:wrap;gap:1rem}
svg{width:100%;height:auto;font:11px system-ui,sans-serif}svg text{fill:var(--ink)}
svg .small{font-size:9.5px;fill:var(--soft)}
svg .grid{stroke:var(--rule)}svg .axis{stroke:var(--soft)}svg .interval{stroke:var(--mark);stroke-width:2}
svg .mark{fill:var(--mark)}svg .point{fill:var(--mark);fill-opacity:.35}svg .fit{stroke:var(--warm);stroke-width:2}
svg .box{fill:var(--mark);fill-opacity:.25;stroke:var(--mark)}svg .median{stroke:var(--warm);stroke-width:2.5}
svg .cell-plus{fill:var(--mark)}svg .cell-minus{fill:var(--warm)}svg .cell-none{fill:var(--panel)}
svg .on-pale{fill:var(--on-pale)}svg .on-middle{fill:var(--on-middle)}svg .on-full{fill:var(--on-full)}
details{background:var(--panel);border:1px solid var(--rule);border-radius:.4rem;padding:.5rem .8rem;margin:.5rem 0}
summary{cursor:pointer}pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:.8rem}
.text{white-space:pre-wrap;overflow-wrap:anywhere}
.two{display:grid;grid-template-columns:1fr 1fr;gap:1rem}@media (max-width:44rem){.two{grid-template-columns:1fr}}
mark{background:color-mix(in srgb,var(--mark) 28%,transparent);color:inherit}
mark.bad{background:color-mix(in srgb,var(--warm) 40%,transparent)}
.supported{color:var(--mark)}.contradicted,.missing{color:var(--warm)}
@media print{body{max-width:none;padding:0}details{break-inside:avoid}details>*{display:block}nav{display:none}
details::details-content{content-visibility:visible;block-size:auto}}
"""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "") -> str:
    """A table whose cells are HTML already."""
    top = "".join(f"<th scope=col>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll {kind}"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def section(title: str, *parts: str) -> tuple[str, str]:
    """(title, HTML) of a part of the page."""
    return title, "".join(parts)


def note(words: str) -> str:
    return f'<p class="note">{escape(words)}</p>'


def page(title: str, subtitle: str, sections: Sequence[tuple[str, str]]) -> str:
    """The whole document."""
    links = "".join(f'<a href="#s{i}">{escape(name)}</a>' for i, (name, _) in enumerate(sections))
    body = "".join(
        f'<section id="s{i}"><h2>{escape(name)}</h2>{html}</section>' for i, (name, html) in enumerate(sections)
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, '
        f'initial-scale=1"><link rel="icon" href="data:,"><title>{escape(title)}</title><style>{STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1><p class=note>{escape(subtitle)}</p><nav>{links}</nav>{body}</body></html>\n"
    )

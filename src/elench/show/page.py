"""One self-contained HTML page: no network, light and dark, phone and print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from elench.show.blocks import heat_style

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""The browser itself refuses whatever the page might fetch."""


@dataclass(frozen=True)
class Section:
    """A titled part of the page."""

    title: str
    html: str


def style() -> str:
    return Path(__file__).with_name("report.css").read_text(encoding="utf-8") + heat_style()


def script() -> str:
    return Path(__file__).with_name("report.js").read_text(encoding="utf-8")


def note(words: str) -> str:
    return f'<p class="note">{escape(words)}</p>'


def folded(title: str, html: str, opened: bool = False) -> str:
    """Something a reader opens when needed."""
    return f"<details{' open' if opened else ''}><summary>{escape(title)}</summary>{html}</details>"


def page(title: str, subtitle: str, sections: Sequence[Section], data: str = "") -> str:
    """The whole document; `data` is what the page's script reads (see `report_records`)."""
    links = "".join(f'<a href="#s{i}">{escape(section.title)}</a>' for i, section in enumerate(sections))
    body = "".join(
        f'<section id="s{i}"><h2>{escape(section.title)}</h2>{section.html}</section>'
        for i, section in enumerate(sections)
    )
    tail = f'<script type="text/plain" id="data">{data}</script><script>{script()}</script>' if data else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, '
        f'initial-scale=1"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{style()}</style></head><body>'
        f'<main><h1>{escape(title)}</h1><p class="note">{escape(subtitle)}</p><nav>{links}</nav>{body}</main>{tail}'
        "</body></html>\n"
    )

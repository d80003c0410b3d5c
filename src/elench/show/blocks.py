"""What evidence is made of on screen: lines, tables, coloured words and marked texts, for the terminal and for HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from elench.grid import Grid
from elench.show.tables import as_html, rich_table

if TYPE_CHECKING:
    from rich.console import RenderableType

FAINT = 0.05
"""Words weaker than this are not coloured."""


@dataclass(frozen=True)
class Line:
    """A named value."""

    label: str
    text: str
    tone: str = ""


@dataclass(frozen=True)
class HeatWord:
    """A word and how it counts, from -1 (against the score) to 1 (for it)."""

    text: str
    strength: float
    value: str
    """The number behind the colour."""
    tip: str = ""
    """What the number means, in full."""


@dataclass(frozen=True)
class Heat:
    """A text whose words are coloured by how they count."""

    label: str
    words: tuple[HeatWord, ...]
    legend: str


@dataclass(frozen=True)
class MarkedText:
    """A text with spans marked; True marks a span as bad."""

    label: str
    text: str
    marks: tuple[tuple[Sequence[int] | None, bool], ...]


@dataclass(frozen=True)
class Folded:
    """Blocks a reader opens when needed."""

    label: str
    blocks: tuple[Block, ...]


Block = Line | Heat | Grid | Folded | tuple[MarkedText, ...]


def block_html(block: Block) -> str:
    """A block as HTML; every text is escaped."""
    if isinstance(block, Line):
        tone = f' class="{block.tone}"' if block.tone else ""
        return f"<p><b>{escape(block.label)}</b> <span{tone}>{escape(block.text)}</span></p>"
    if isinstance(block, Heat):
        words = " ".join(map(_word_html, block.words))
        return f'<p class="heat"><b title="{escape(block.legend, quote=True)}">{escape(block.label)}</b> {words}</p>'
    if isinstance(block, Grid):
        return as_html(block, "wrap")
    if isinstance(block, Folded):
        return f"<details><summary>{escape(block.label)}</summary>{''.join(map(block_html, block.blocks))}</details>"
    sides = "".join(
        f'<div><b>{escape(side.label)}</b><p class="text">{marked(side.text, side.marks)}</p></div>' for side in block
    )
    return f'<div class="two">{sides}</div>'


def _word_html(word: HeatWord) -> str:
    shown, tip = escape(word.text), f' title="{escape(word.tip or word.value, quote=True)}"'
    share = round(min(abs(word.strength), 1) * 10)
    if abs(word.strength) < FAINT or not share:
        return f"<span{tip}>{shown}</span>"
    return f'<i class="{"p" if word.strength > 0 else "n"}{share}"{tip}>{shown}</i>'


def heat_style() -> str:
    """The style rules of the ten steps of warmth, for and against."""
    return "".join(
        f".heat .{side}{k}{{background:color-mix(in srgb,var({colour}) {k * 6}%,transparent)}}"
        for side, colour in (("p", "--mark"), ("n", "--warm"))
        for k in range(1, 11)
    )


def marked(text: str, marks: Sequence[tuple[Sequence[int] | None, bool]]) -> str:
    """The text with spans marked, bad ones in the warm colour; overlapping spans merge."""
    colours = [0] * (len(text) + 1)
    for span, bad in marks:
        if span:
            for i in range(max(0, span[0]), min(len(text), span[1])):
                colours[i] = max(colours[i], 2 if bad else 1)
    out, start = [], 0
    for i in range(1, len(text) + 1):
        if i == len(text) or colours[i] != colours[start]:
            piece = escape(text[start:i])
            tag = {0: piece, 1: f"<mark>{piece}</mark>", 2: f'<mark class="bad">{piece}</mark>'}
            out.append(tag[colours[start]])
            start = i
    return "".join(out)


def block_rich(block: Block) -> RenderableType:
    """A block for the terminal."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    if isinstance(block, Line):
        colour = {"bad": "red", "warn": "yellow", "good": "green"}.get(block.tone, "")
        return Text.assemble(f"    {block.label}: ", (block.text, colour))
    if isinstance(block, Heat):
        return _heat_rich(block)
    if isinstance(block, Grid):
        return Padding(rich_table(block), (0, 0, 0, 4))
    if isinstance(block, Folded):
        return Group(*map(block_rich, block.blocks))
    return Text()  # marked texts are for the page: the terminal shows the table beside them


def _heat_rich(block: Heat) -> RenderableType:
    from rich.style import Style
    from rich.text import Text

    shown = Text(f"    {block.label}: ", style="dim")
    for word in block.words:
        warmth = min(abs(word.strength), 1.0)
        if warmth < FAINT:
            shown.append(word.text + " ", style="not dim")
            continue
        fade = [int(255 - 120 * warmth), int(245 - 75 * warmth)]
        ground = f"#{fade[0]:02x}{fade[1]:02x}ff" if word.strength > 0 else f"#ff{fade[1]:02x}{fade[0]:02x}"
        shown.append(word.text, style=Style(color="black", bgcolor=ground, bold=warmth > 0.5, dim=False))
        shown.append(f"·{word.value} ", style="dim")
    return shown

"""The report's pictures: small SVG drawings that follow the page's colours, light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
MIDDLE, FULL = 0.6, 0.87
"""How strong a cell's colour must be for its ink to change: the first in the dark scheme, the second in the light."""


class Axis:
    """A straight scale from data to pixels with a few round ticks."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        if high - low < 1e-12:
            low, high = low - 0.5, high + 0.5
        self.low, self.high, self.start, self.end = low, high, start, end

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        step = 10 ** np.floor(np.log10((self.high - self.low) / count))
        for factor in (1, 2, 5, 10):
            if (self.high - self.low) / (step * factor) <= count:
                step *= factor
                break
        first = np.ceil(self.low / step) * step
        return [float(v) + 0.0 for v in np.round(np.arange(first, self.high + step * 1e-9, step), 12)]


def text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(words)}</text>'


def label(x: float, y: float, name: str, room: int, anchor: str = "start", kind: str = "") -> str:
    """A name cut in the middle to `room` characters; the whole name shows under the pointer."""
    words = text(x, y, shortened(name, room), anchor, kind)
    return words.replace(">", f"><title>{escape(name)}</title>", 1)


def shortened(name: str, room: int) -> str:
    """A name of at most `room` characters: its beginning and end, because variants of a metric begin alike."""
    if len(name) <= room:
        return name
    end = (room - 1) // 2
    return f"{name[: room - 1 - end]}…{name[-end:]}"


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "axis") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def drawing(width: float, height: float, about: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(about, quote=True)}" '
        f'style="max-width:{width:.0f}px">{"".join(parts)}</svg>'
    )


def dots(rows: Sequence[tuple[str, float, float | None, float | None]], about: str) -> str:
    """Points with 95 % intervals, one row each: (name, value, low, high)."""
    left, width, step, top = 128.0, 340.0, 22.0, 22.0
    ends = [v for _, value, low, high in rows for v in (value, low, high) if v is not None]
    pad = (max(ends) - min(ends)) * 0.06
    x = Axis(min(ends) - pad, max(ends) + pad, left, width - 52)
    height = top + step * len(rows) + 22
    parts = [text(2, 12, shortened(about, 50), "start", "title")]
    parts += [
        line(x(t), top, x(t), height - 20, "grid") + text(x(t), height - 6, f"{t:g}", "middle", "small")
        for t in x.ticks(4)
    ]
    for i, (name, value, low, high) in enumerate(rows):
        y = top + step * i + 11
        parts.append(label(left - 8, y + 4, name, 18, "end"))
        if low is not None and high is not None:
            parts.append(line(x(low), y, x(high), y, "interval"))
        parts.append(f'<circle cx="{x(value):.1f}" cy="{y:.1f}" r="4" class="mark"/>')
        parts.append(text(width - 2, y + 4, f"{value:.3f}", "end"))
    return drawing(width, height, f"{about}: mean and 95 % interval per system", parts)


def violins(groups: Sequence[tuple[str, Array]], about: str) -> str:
    """The distribution of scores, one row each: density, quartiles, median."""
    left, width, step, top = 128.0, 340.0, 34.0, 22.0
    everything = np.concatenate([values for _, values in groups])
    x = Axis(float(everything.min()), float(everything.max()), left, width - 8)
    height = top + step * len(groups) + 22
    parts = [text(2, 12, shortened(about, 50), "start", "title")]
    parts += [
        line(x(t), top, x(t), height - 20, "grid") + text(x(t), height - 6, f"{t:g}", "middle", "small")
        for t in x.ticks(4)
    ]
    for i, (name, values) in enumerate(groups):
        y = top + step * i + 17
        parts.append(label(left - 8, y, name, 18, "end"))
        parts.append(text(left - 8, y + 12, f"n={len(values)}", "end", "small"))
        edges = np.linspace(x.low, x.high, 41)
        density = np.convolve(np.histogram(values, edges)[0], [0.1, 0.2, 0.4, 0.2, 0.1], "same")
        reach = density / max(float(density.max()), 1e-12) * 13
        middles = (edges[1:] + edges[:-1]) / 2
        upper = [f"{x(a):.0f},{y - b:.1f}" for a, b in zip(middles, reach, strict=True)]
        lower = [f"{x(a):.0f},{y + b:.1f}" for a, b in zip(middles[::-1], reach[::-1], strict=True)]
        parts.append(f'<polygon points="{" ".join(upper + lower)}" class="violin"/>')
        q25, q50, q75 = np.quantile(values, [0.25, 0.5, 0.75])
        parts.append(line(x(q25), y, x(q75), y, "interval"))
        parts.append(line(x(q50), y - 6, x(q50), y + 6, "median"))
    return drawing(width, height, f"{about}: distribution of scores per system", parts)


def boxes(groups: Sequence[tuple[str, Array]], about: str) -> str:
    """Box plots: quartiles, median, whiskers at the 5th and 95th percentile, one box per group."""
    width, height, bottom = max(260.0, 56.0 * len(groups) + 60), 220.0, 180.0
    everything = np.concatenate([values for _, values in groups])
    y = Axis(float(np.quantile(everything, 0.01)), float(np.quantile(everything, 0.99)), bottom, 10)
    parts = [line(44, y(t), width, y(t), "grid") + text(40, y(t) + 4, f"{t:g}", "end") for t in y.ticks()]
    for i, (name, values) in enumerate(groups):
        x = 76 + 56.0 * i
        q5, q25, q50, q75, q95 = np.clip(np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95]), y.low, y.high)
        parts.append(line(x, y(q5), x, y(q95), "interval"))
        parts.append(
            f'<rect x="{x - 16:.1f}" y="{y(q75):.1f}" width="32" height="{y(q25) - y(q75) + 0.5:.1f}" class="box"/>'
        )
        parts.append(line(x - 16, y(q50), x + 16, y(q50), "median"))
        parts += [text(x, bottom + 18, name, "middle"), text(x, bottom + 33, f"n={len(values)}", "middle", "small")]
    return drawing(width, height, about, parts)


def scatter(x_values: Array, y_values: Array, x_name: str, y_name: str) -> str:
    """Points with a least-squares line; at most 1,000 points are drawn."""
    width, height = 340.0, 260.0
    x = Axis(float(x_values.min()), float(x_values.max()), 50, width - 12)
    y = Axis(float(y_values.min()), float(y_values.max()), height - 44, 10)
    parts = [line(50, y(t), width - 12, y(t), "grid") + text(46, y(t) + 4, f"{t:g}", "end") for t in y.ticks(4)]
    parts += [text(x(t), height - 28, f"{t:g}", "middle") for t in x.ticks(4)]
    keep = np.linspace(0, len(x_values) - 1, min(len(x_values), 1000)).astype(int)
    spread = np.random.default_rng(0).uniform(-1.5, 1.5, (len(x_values), 2))
    parts += [
        f'<circle cx="{x(a) + dx:.1f}" cy="{y(b) + dy:.1f}" r="2" class="point"/>'
        for a, b, (dx, dy) in zip(x_values[keep], y_values[keep], spread[keep], strict=True)
    ]
    if np.ptp(x_values) > 0:
        slope, start = np.polyfit(x_values, y_values, 1)
        ends = [np.clip(start + slope * v, y.low, y.high) for v in (x.low, x.high)]
        parts.append(line(x(x.low), y(ends[0]), x(x.high), y(ends[1]), "fit"))
    parts += [text(width / 2, height - 8, x_name, "middle"), text(50, 8, y_name, "start", "small")]
    return drawing(width, height, f"{y_name} against {x_name}", parts)


def heat_map(rows: Sequence[str], columns: Sequence[str], values: Array, about: str) -> str:
    """A grid of correlations from -1 to 1: colour and number in each cell."""
    cell, left, top = 46.0, 190.0, 110.0
    width, height = left + cell * len(columns) + 64, top + 24.0 * len(rows) + 6
    parts = []
    for j, name in enumerate(columns):
        x = left + cell * (j + 0.5)
        parts.append(f'<g transform="translate({x:.1f},{top - 6:.1f}) rotate(-45)">{label(0, 0, name, 20)}</g>')
    for i, name in enumerate(rows):
        y = top + 24.0 * i
        parts.append(label(left - 8, y + 16, name, 28, "end"))
        for j in range(len(columns)):
            value = float(values[i, j])
            at = f'x="{left + cell * j:.1f}" y="{y:.1f}" width="{cell - 2:.1f}" height="22"'
            if np.isnan(value):
                parts.append(f'<rect {at} class="cell-none"/>')
                continue
            side, strength = "plus" if value >= 0 else "minus", min(abs(value), 1)
            ink = "on-full" if strength >= FULL else "on-middle" if strength >= MIDDLE else "on-pale"
            parts.append(f'<rect {at} class="cell-{side}" fill-opacity="{strength:.2f}"/>')
            shown = f"{value:.2f}".replace("0.", ".")
            parts.append(text(left + cell * (j + 0.5) - 1, y + 15, shown, "middle", f"small {ink}"))
    return drawing(width, height, about, parts)


def curve(names: Sequence[str], values: Sequence[float], y_name: str) -> str:
    """A line through one value per step, each step named."""
    step, height = 86.0, 240.0
    width = 70 + step * len(values)
    y = Axis(min(0.0, *values), max(values), height - 64, 36)  # room for the name above the highest label
    parts = [line(50, y(t), width, y(t), "grid") + text(46, y(t) + 4, f"{t:g}", "end") for t in y.ticks(4)]
    points = [(90 + step * i, y(v)) for i, v in enumerate(values)]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    parts.append(f'<polyline points="{path}" class="fit" fill="none"/>')
    for (a, b), name, value in zip(points, names, values, strict=True):
        parts += [
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4" class="mark"/>',
            text(a, b - 8, f"{value:.3f}", "middle", "small"),
        ]
        named = label(0, 0, name, 18, "start", "small")
        parts.append(f'<g transform="translate({a:.1f},{height - 46:.1f}) rotate(20)">{named}</g>')
    parts.append(text(50, 10, y_name, "start", "small"))
    return drawing(width, height, y_name, parts)

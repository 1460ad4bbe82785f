"""Landed commits a second against writers, as an SVG: one panel for each set-up and storage latency."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from benchmarks.contention.cases import Case, Measured, Mode, SetUp, storage

COLOURS = {Mode.OFF: "#777777", Mode.ON: "#0072b2", Mode.REBASE: "#d55e00", Mode.PEER: "#009e73"}
"""Told apart by people who see few colours, too; the marks differ besides."""
FEWEST_POINTS = 3
"""A panel needs so many numbers of writers."""
WIDTH, HEIGHT = 290, 220
LEFT, TOP, GAP_X, GAP_Y = 66, 84, 24, 66
INSET, RIGHT_INSET = 18, 42
LINE = 12
"""Numbers at the ends of lines are so far apart."""


def plot(found: Sequence[Measured], title: str) -> str | None:
    """Return the SVG; None if there is nothing to draw."""
    panels: dict[tuple[SetUp, int], list[Measured]] = {}
    for one in found:
        if not one.case.is_herd and one.rate > 0:
            panels.setdefault((one.case.set_up, one.case.latency_ms), []).append(one)
    drawn = {
        key: points
        for key, points in panels.items()
        if len({point.case.writers for point in points}) >= FEWEST_POINTS
    }
    if not drawn:
        return None
    rows = sorted({set_up for set_up, _ in drawn}, key=list(SetUp).index)
    columns = sorted({latency for _, latency in drawn})
    rates = [point.rate for points in drawn.values() for point in points]
    axes = _Axes(
        _decades(min(rates), max(rates)), sorted({p.case.writers for ps in drawn.values() for p in ps})
    )
    parts = []
    for row, set_up in enumerate(rows):
        for column, latency in enumerate(columns):
            if (set_up, latency) in drawn:
                x, y = LEFT + column * (WIDTH + GAP_X), TOP + row * (HEIGHT + GAP_Y)
                parts.append(_panel(drawn[set_up, latency], axes, x, y, has_labels=column == 0))
    width = LEFT + len(columns) * (WIDTH + GAP_X)
    height = TOP + len(rows) * (HEIGHT + GAP_Y) - GAP_Y + 58
    modes = [mode for mode in Mode if any(p.case.mode is mode for ps in drawn.values() for p in ps)]
    middle_x, middle_y = LEFT + (width - LEFT) / 2, (TOP + height - 58) / 2
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                f'height="{height}" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#222222">'
            ),
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            f'<text x="{LEFT}" y="26" font-size="16" font-weight="bold">{escape(title)}</text>',
            *_legend(modes),
            *parts,
            f'<text x="{middle_x:.0f}" y="{height - 14}" text-anchor="middle">writers on one table</text>',
            (
                f'<text x="16" y="{middle_y:.0f}" text-anchor="middle" transform="rotate(-90 16 {middle_y:.0f})">'
                "landed commits a second (logarithmic)</text>"
            ),
            "</svg>",
            "",
        ]
    )


class _Axes:
    """Where a number of writers and a rate are inside a panel; both axes are logarithmic or in even steps."""

    def __init__(self, ticks: list[float], writers: list[int]) -> None:
        self.ticks, self.writers = ticks, writers
        self._steps = {rate: step for step, rate in enumerate(ticks)}

    def x(self, writers: int) -> float:
        last = max(1, len(self.writers) - 1)
        return INSET + (WIDTH - INSET - RIGHT_INSET) * self.writers.index(writers) / last

    def y(self, rate: float) -> float:
        """Interpolate between ticks of 1, 2, 5, 10, … which are about evenly apart in logarithms."""
        for low, high in zip(self.ticks, self.ticks[1:], strict=False):
            if rate <= high:
                step = self._steps[low] + max(0.0, (rate - low) / (high - low))
                return HEIGHT * (1 - step / (len(self.ticks) - 1))
        return 0.0


def _decades(lowest: float, highest: float) -> list[float]:
    """Return 1, 2, 5, 10, … from below the lowest to above the highest."""
    ladder = [factor * 10.0**power for power in range(-3, 7) for factor in (1, 2, 5)]
    first = max(index for index, rung in enumerate(ladder) if rung <= lowest)
    last = min(index for index, rung in enumerate(ladder) if rung >= highest)
    return ladder[first : max(last, first + 1) + 1]


def _panel(points: list[Measured], axes: _Axes, left: int, top: int, *, has_labels: bool) -> str:
    case = points[0].case
    parts = [
        f'<g transform="translate({left} {top})">',
        f'<text x="0" y="-9" font-weight="bold">{escape(_title(case))}</text>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fafafa" stroke="#999999"/>',
    ]
    for tick in axes.ticks:
        y = axes.y(tick)
        parts.append(f'<line x1="0" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e2e2e2"/>')
        if has_labels:
            parts.append(f'<text x="-8" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for writers in axes.writers:
        x = axes.x(writers)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{HEIGHT}" y2="{HEIGHT + 5}" stroke="#999999"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT + 19}" text-anchor="middle">{writers}</text>')
    ends: list[tuple[float, float, float, str]] = []
    for mode, colour in COLOURS.items():
        of_mode = sorted((p for p in points if p.case.mode is mode), key=lambda p: p.case.writers)
        places = [(axes.x(p.case.writers), axes.y(p.rate)) for p in of_mode]
        if places:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2.2"/>')
            parts += [_mark(mode, x, y) for x, y in places]
            ends.append((places[-1][1], places[-1][0], of_mode[-1].rate, colour))
    return "\n".join([*parts, *_numbers(ends), "</g>"])


def _title(case: Case) -> str:
    return f"{case.set_up.title}, {storage(case.latency_ms)}"


def _numbers(ends: list[tuple[float, float, float, str]]) -> list[str]:
    """Write the last rate of each line beside its end, given as y, x, rate and colour."""
    parts = []
    free = -float(LINE)
    for y, x, rate, colour in sorted(ends):
        free = max(y + 4, free + LINE)
        shown = f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}"
        parts.append(f'<text x="{x + 9:.1f}" y="{free:.1f}" font-size="11" fill="{colour}">{shown}</text>')
    return parts


def _legend(modes: list[Mode]) -> list[str]:
    parts = []
    for number, mode in enumerate(modes):
        x = LEFT + 6 + number * 120
        parts.append(
            f'<line x1="{x}" x2="{x + 28}" y1="48" y2="48" stroke="{COLOURS[mode]}" stroke-width="2.2"/>'
        )
        parts.append(_mark(mode, x + 14, 48))
        parts.append(f'<text x="{x + 35}" y="52">{escape(mode.value)}</text>')
    return parts


def _mark(mode: Mode, x: float, y: float) -> str:
    """Draw a point: each mode has a shape of its own."""
    colour = COLOURS[mode]
    if mode is Mode.OFF:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
    if mode is Mode.ON:
        return f'<rect x="{x - 3.8:.1f}" y="{y - 3.8:.1f}" width="7.6" height="7.6" fill="{colour}"/>'
    corners = f"{x:.1f},{y - 5:.1f} {x - 5:.1f},{y + 4:.1f} {x + 5:.1f},{y + 4:.1f}"
    if mode is Mode.PEER:
        corners = f"{x:.1f},{y - 5:.1f} {x - 5:.1f},{y:.1f} {x:.1f},{y + 5:.1f} {x + 5:.1f},{y:.1f}"
    return f'<polygon points="{corners}" fill="{colour}"/>'

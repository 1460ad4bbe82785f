"""A picture of how snapshots descend from each other: one lane a branch, newest on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]

KNOWN_PARENT = "●"
ROOT_OR_UNKNOWN_PARENT = "○"


@dataclass(frozen=True, slots=True)
class GraphLine:
    """The lanes of one line, and its snapshot; None where lanes only join."""

    lanes: str
    snapshot: Json | None


def graph_lines(snapshots: Sequence[Json]) -> list[GraphLine]:
    """Return the picture of snapshots, children before parents; `main` has the first lane."""
    known = {snapshot["snapshot-id"] for snapshot in snapshots}
    lanes: list[int | None] = []
    lines: list[GraphLine] = []
    for snapshot in snapshots:
        own = [lane for lane, awaited in enumerate(lanes) if awaited == snapshot["snapshot-id"]]
        if not own:
            own = [_new_lane(lanes, is_main="main" in snapshot.get("branches", ()))]
        lane, *joining = own
        if joining:
            lines.append(GraphLine(_joined(lanes, lane, joining), None))
            for other in joining:
                lanes[other] = None
        parent = snapshot.get("parent-snapshot-id")
        sign = KNOWN_PARENT if parent in known else ROOT_OR_UNKNOWN_PARENT
        lines.append(GraphLine(_drawn(lanes, lane, sign), snapshot))
        lanes[lane] = parent if parent in known else None
    return lines


def _new_lane(lanes: list[int | None], *, is_main: bool) -> int:
    if not lanes:
        lanes.append(None)
    if is_main and lanes[0] is None:
        return 0
    for lane in range(1, len(lanes)):
        if lanes[lane] is None:
            return lane
    lanes.append(None)
    return len(lanes) - 1


def _drawn(lanes: Sequence[int | None], own: int, sign: str) -> str:
    signs = [sign if lane == own else " " if awaited is None else "│" for lane, awaited in enumerate(lanes)]
    return " ".join(signs).rstrip()


def _joined(lanes: Sequence[int | None], own: int, joining: Sequence[int]) -> str:
    drawn = ""
    for lane, awaited in enumerate(lanes):
        inside = own < lane < joining[-1]
        if lane == own:
            sign = "├"
        elif lane in joining:
            sign = "┴" if lane != joining[-1] else "╯"
        elif awaited is None:
            sign = "─" if inside else " "
        else:
            sign = "┼" if inside else "│"
        drawn += sign + ("─" if own <= lane < joining[-1] else " ")
    return drawn.rstrip()

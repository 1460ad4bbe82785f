"""The conflict of a commit in plain words, for a refusal and for a dry run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.cli.terminal.texts import moment_text

Json = Mapping[str, Any]
SHOWN = 5
_COUNTERS = {"last-sequence-number": "last sequence number", "next-row-id": "next row id"}


def conflict_lines(conflict: Json) -> list[str]:
    """Return the details of a commit's failure; fields of a newer server are ignored."""
    lines = []
    requirement, counter = conflict.get("requirement"), conflict.get("counter")
    if isinstance(requirement, Mapping):
        expected, found = value_text(conflict.get("expected")), value_text(conflict.get("found"))
        lines.append(f"{requirement_text(requirement)}: expected {expected}, found {found}.")
    elif counter is not None:
        name = _COUNTERS.get(counter, counter)
        lines.append(
            f"Prepared for a {name} of {conflict.get('expected')} at most; it is {conflict.get('found')}."
        )
    if conflict.get("not-rebased") is not None:
        lines.append(f"Not rebased: {conflict['not-rebased']}")
    lines += _landed_lines(conflict.get("snapshots"), conflict.get("snapshot-count"))
    return lines


def requirement_text(requirement: Json) -> str:
    """Return the name of a requirement for people."""
    kind = str(requirement.get("type", "")).removeprefix("assert-").replace("-", " ")
    ref = requirement.get("ref")
    return f"{kind} of {ref}" if ref is not None else kind


def value_text(value: object) -> str:
    """Return an expected or found value for people."""
    return "nothing" if value is None else str(value)


def _landed_lines(snapshots: object, count: object) -> list[str]:
    if not isinstance(snapshots, list) or not snapshots:
        return []
    total = count if isinstance(count, int) else len(snapshots)
    noun = "snapshot" if total == 1 else "snapshots"
    lines = [
        f"  {item.get('snapshot-id')}  {moment_text(item.get('timestamp-ms'))}  {item.get('operation', '')}".rstrip()
        for item in snapshots[:SHOWN]
    ]
    if total > SHOWN:
        lines.append(f"  … and {total - SHOWN} more")
    return [f"Since the commit was prepared, {total} {noun} landed, newest first:", *lines]

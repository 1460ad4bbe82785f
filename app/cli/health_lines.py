"""The health of tables as lines for people: sizes, severities, findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.text import Text

from app.cli.terminal.texts import counted, moment_text

Json = Mapping[str, Any]

_STYLES: Final = {"critical": "bold red", "warning": "bold yellow", "info": "cyan", "ok": "bold green"}
_SEVERITIES: Final = ("critical", "warning", "info")
_BAR: Final = 24
OVERVIEW_COLUMNS: Final = (
    "health",
    "table",
    "files",
    "average",
    "deletes",
    "snapshots",
    "manifests",
    "finding",
)
"""The columns of a list of tables."""
PROFILE_COLUMNS: Final = ("column", "type", "values", "nulls", "NaN", "bytes", "lower", "upper")
_SHOWN_CHARACTERS: Final = 24


def size_text(size: float | None) -> str:
    """Return a number of bytes for people."""
    if size is None:
        return "unknown"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError


def severity_text(severity: str) -> Text:
    """Return a severity in its colour."""
    return Text(severity, style=_STYLES.get(severity, ""))


def finding_lines(findings: Sequence[Json]) -> list[list[object]]:
    """Return a row for each finding: severity, what it is, what mends it."""
    return [
        [severity_text(finding["severity"]), finding["message"], finding.get("command", "–")]
        for finding in findings
    ]


def waiting_line(deletion: Json) -> str:
    """Return a sentence about a deletion of files that cannot go on."""
    next_ms = deletion.get("next-attempt-ms")
    then = "it is not tried again" if next_ms is None else f"it is tried again at {moment_text(next_ms)}"
    return (
        f"Files of {deletion['table']} wait to be deleted ({deletion['kind']}, since "
        f"{moment_text(deletion['queued-ms'])}, {then}): {deletion['error']}"
    )


def histogram_lines(groups: Sequence[Json]) -> list[str]:
    """Return a line with a bar for each group of sizes that has files."""
    most = max((group["files"] for group in groups), default=0)
    lines, below = [], "0 bytes"
    for group in groups:
        bound = group.get("below-bytes")
        label = f"{below} and more" if bound is None else f"below {size_text(bound)}"
        if group["files"]:
            bar = "█" * max(1, round(_BAR * group["files"] / most))
            lines.append(f"{label:>22}  {bar} {group['files']}")
        below = size_text(bound)
    return lines


def urgency(table: Json) -> list[int]:
    """Return a key that puts tables with more urgent findings first."""
    severities = Counter(finding["severity"] for finding in table["findings"])
    is_unreadable = any(finding["code"] == "unreadable" for finding in table["findings"])
    return [-is_unreadable, *(-severities[severity] for severity in _SEVERITIES)]


def overview_row(table: Json) -> list[object]:
    """Return the row of a table in a list of many: the figures, and the most urgent finding."""
    totals, manifests = table.get("summary-totals", {}), table.get("manifests", {})
    files = totals.get("data-files", 0) + totals.get("delete-files", 0)
    average = totals["all-bytes"] / files if files and "all-bytes" in totals else None
    first, *others = table["findings"] or [{"message": ""}]
    more = f" (and {len(others)} more)" if others else ""
    return [
        severity_text(table["severity"]),
        ".".join([*table["namespace"], table["table"]]),
        totals.get("data-files", "–"),
        "–" if average is None else size_text(average),
        totals.get("delete-files", "–"),
        table.get("metadata", {}).get("snapshots", "–"),
        manifests["data-manifests"] + manifests["delete-manifests"] if manifests else "–",
        f"{first['message']}{more}",
    ]


def severities_line(numbers: Counter[str]) -> str:
    """Return how many tables there are of each severity."""
    kinds = ", ".join(f"{numbers[kind]} {kind}" for kind in _STYLES if numbers[kind])
    return f"{counted(numbers.total(), 'table')}: {kinds}"


def profile_row(column: Json, files: int) -> list[object]:
    """Return the row of a column; `files` is how many data files the table has."""

    def known(text: str, where: str) -> str:
        number = column[f"{where}-files"]
        return text if number == files else f"{text} of {number} files"

    def count(name: str) -> str:
        total = column.get(f"{name}-count")
        if total is None:
            return "–"
        share = column.get(f"{name}-share")
        text = str(total) if share is None else f"{total} ({100 * share:.1f} %)"
        return known(text, f"{name}-count")

    def bound(name: str) -> str:
        value = column.get(name)
        if value is None:
            return "–"
        text = str(value)
        text = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
        return known(text if column["bounds-exact"] else f"~{text}", name)

    size = column.get("column-bytes")
    return [
        column["name"],
        column["type"],
        count("value"),
        count("null"),
        count("nan"),
        "–" if size is None else known(size_text(size), "column-bytes"),
        bound("lower-bound"),
        bound("upper-bound"),
    ]

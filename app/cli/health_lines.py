"""The health of tables as lines for people: sizes, severities, findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.text import Text

Json = Mapping[str, Any]

_STYLES: Final = {"critical": "bold red", "warning": "bold yellow", "info": "cyan", "ok": "bold green"}
_BAR: Final = 24


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

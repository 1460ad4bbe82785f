"""What was measured, as rows of a Markdown table."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.md")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure beside what it is compared with; `aim` says what it is meant to be."""

    what: str
    measured: str
    beside: str
    ratio: str
    aim: str


def rate(per_second: float) -> str:
    """Return a rate for people."""
    return f"{per_second:,.0f}/s"


def machine() -> str:
    """Return what the figures were measured on."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return f"{os.cpu_count()} cores, {memory_gib:.0f} GiB, {platform.system()}, Python {platform.python_version()}"


def table(title: str, rows: list[Row]) -> str:
    """Return a section with a table."""
    lines = [f"## {title}", "", "| what | Icetower | beside it | ratio | aim |", "|---|---|---|---|---|"]
    lines += [f"| {row.what} | {row.measured} | {row.beside} | {row.ratio} | {row.aim} |" for row in rows]
    return "\n".join(lines)


def page(sections: list[str], command: str) -> str:
    """Return the whole page."""
    head = (
        f"# Results\n\nWritten by `{command}` on {datetime.now(UTC):%Y-%m-%d}, on a machine with {machine()}; "
        "load from wrk on the same machine. Compare the figures with each other only."
    )
    return "\n\n".join([head, *sections]) + "\n"

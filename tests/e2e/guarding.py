"""What the guard of a running server has seen, from its metrics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

_SAMPLE = re.compile(r"^icetower_guard(?:ed_snapshots|_findings)_total\{([^}]*)\} ([0-9.]+)$", re.MULTILINE)


@dataclass
class Watched:
    """How many snapshots came out how, and how many findings there were of each kind."""

    snapshots: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)


@contextmanager
def watched(url: str) -> Iterator[Watched]:
    """Hand out what the guard sees until the block ends; filled in then."""
    before, seen = _seen(url), Watched()
    yield seen
    after = _seen(url)
    seen.snapshots = after.snapshots - before.snapshots
    seen.findings = after.findings - before.findings


def _seen(url: str) -> Watched:
    seen = Watched()
    for labels, value in _SAMPLE.findall(httpx.get(f"{url}/metrics").text):
        told = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        kind = told.get("kind")
        if kind is None:
            seen.snapshots[told["outcome"]] += int(float(value))
        else:
            seen.findings[kind] += int(float(value))
    return seen

"""JSON and metrics of the traffic on tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import orjson
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from app.catalog.context.traffic import Counts, TableTraffic

_HELP = {
    "landed": "Commits that landed.",
    "moves": "Moves of the pointer; each lands one commit or several.",
    "refused": "Commits that failed because of others.",
    "races_lost": "Attempts that another process was faster than.",
    "rebased": "Commits that the server has put on top of others than their client had seen.",
    "unknown": "Commits of unknown outcome.",
}
_LABELS = ["warehouse", "table", "process"]


def traffic_json(traffic: TableTraffic) -> bytes:
    """Return the traffic on one table."""
    return orjson.dumps({"process": os.getpid(), **_traffic(traffic)})


def busiest_json(found: Sequence[TableTraffic]) -> bytes:
    """Return the traffic on several tables."""
    return orjson.dumps({"process": os.getpid(), "tables": [_traffic(traffic) for traffic in found]})


def _traffic(traffic: TableTraffic) -> dict[str, Any]:
    return {
        "namespace": list(traffic.identifier.namespace.levels),
        "table": traffic.identifier.name,
        "since-ms": traffic.since_ms,
        "last-ms": traffic.last_ms,
        "landed-last-minute": traffic.landed_last_minute,
        "refused-last-minute": traffic.refused_last_minute,
        "most-together": traffic.most_together,
        **{name.replace("_", "-"): number for name, number in asdict(traffic.counts).items()},
    }


def traffic_metrics(found: Iterable[TableTraffic]) -> Iterator[Metric]:
    """Yield counters with a label for each table that is kept, and no others."""
    kept, process = list(found), str(os.getpid())
    for name in Counts.__slots__:
        counter = CounterMetricFamily(f"icetower_table_{name}", _HELP[name], labels=_LABELS)
        for traffic in kept:
            counter.add_metric(_labels(traffic, process), getattr(traffic.counts, name))
        yield counter
    together = GaugeMetricFamily(
        "icetower_table_most_together", "The most commits that one move has landed.", labels=_LABELS
    )
    for traffic in kept:
        together.add_metric(_labels(traffic, process), traffic.most_together)
    yield together


def _labels(traffic: TableTraffic, process: str) -> list[str]:
    return [traffic.warehouse, str(traffic.identifier), process]

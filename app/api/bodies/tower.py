"""JSON and metrics of the traffic on tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import orjson
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from app.catalog.context.seen.traffic import Counts, QueueState, TableTraffic
from app.engine.upkeep.sql_text import quoted

_HELP = {
    "landed": "Commits that landed.",
    "moves": "Moves of the pointer; each lands one commit or several.",
    "refused": "Commits that failed because of others.",
    "races_lost": "Attempts that another process was faster than.",
    "rebased": "Commits that the server has put on top of others than their client had seen.",
    "unknown": "Commits of unknown outcome.",
    "slots_given": "Slots given to writers that had lost races.",
    "slots_used": "Slots in which the writer has landed.",
    "slots_lost": "Slots in which the writer has lost once more.",
    "slots_passed": "Slots in which the writer has not come.",
    "loads_held": "Loads by writers that waited until no other writer was on its way.",
    "landed_after_losses": "Commits that landed though their writer had lost two races or more.",
    "gave_up": "Writers that have lost as often as they may try again.",
}
_GAUGES: dict[str, tuple[str, Callable[[TableTraffic], float]]] = {
    "most_together": ("The most commits that one move has landed.", lambda traffic: traffic.most_together),
    "queue_length": (
        "Writers in the table's queue, which all processes share.",
        lambda traffic: traffic.queue.queue_length,
    ),
    "longest_wait_seconds": (
        "Since when the first writer in the queue waits.",
        lambda traffic: traffic.queue.longest_wait_ms / 1000,
    ),
    "answers_held": (
        "Refusals that this process holds back.",
        lambda traffic: traffic.queue.answers_held,
    ),
    "commits_at_gate": (
        "Commits that wait in this process for the slots of others.",
        lambda traffic: traffic.queue.commits_at_gate,
    ),
    "slot_window_seconds": (
        "How long a writer takes from the end of its back-off to its commit, as learnt.",
        lambda traffic: traffic.queue.window_ms / 1000,
    ),
    "slot_spacing_seconds": (
        "How long after each other slots open, as learnt.",
        lambda traffic: traffic.queue.spacing_ms / 1000,
    ),
    "landing_interval_seconds": (
        "The time between two landings, as learnt.",
        lambda traffic: traffic.queue.interval_ms / 1000,
    ),
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
        **_numbers(traffic.counts),
        **_numbers(traffic.queue),
    }


def _numbers(numbers: Counts | QueueState) -> dict[str, float]:
    return {name.replace("_", "-"): round(number, 1) for name, number in asdict(numbers).items()}


def traffic_metrics(found: Iterable[TableTraffic]) -> Iterator[Metric]:
    """Yield counters and gauges with a label for each table that is kept, and no others."""
    kept, process = list(found), str(os.getpid())
    for name in Counts.__slots__:
        counter = CounterMetricFamily(f"icetower_table_{name}", _HELP[name], labels=_LABELS)
        for traffic in kept:
            counter.add_metric(_labels(traffic, process), getattr(traffic.counts, name))
        yield counter
    for name, (meaning, value_of) in _GAUGES.items():
        gauge = GaugeMetricFamily(f"icetower_table_{name}", meaning, labels=_LABELS)
        for traffic in kept:
            gauge.add_metric(_labels(traffic, process), value_of(traffic))
        yield gauge


def _labels(traffic: TableTraffic, process: str) -> list[str]:
    named = traffic.identifier
    # Without the quotes, a table `b.c` of namespace `a` would be table `c` of `a.b`: two samples of one series.
    parts = [
        quoted(part) if set(part) & {".", "`"} else part for part in (*named.namespace.levels, named.name)
    ]
    return [traffic.warehouse, ".".join(parts), process]

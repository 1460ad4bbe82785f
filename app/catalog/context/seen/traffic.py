"""The traffic on tables: what came of commits to the busiest ones, in this process."""

from __future__ import annotations

import heapq
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from app.engine.model.identifiers import TableIdentifier

MOST_TABLES = 200
"""How many tables are kept; the one that was quiet the longest goes first."""
_SECONDS = 60

TableKey = tuple[str, TableIdentifier]
"""The name of a warehouse, and of a table in it."""


@dataclass(slots=True)
class Counts:
    """What was counted of one table. A new number needs a field here, and a call of `Traffic.count`."""

    landed: int = 0
    """Commits that landed."""
    moves: int = 0
    """Moves of the pointer; each lands one commit or several."""
    refused: int = 0
    """Commits that failed because of others."""
    races_lost: int = 0
    """Attempts that another process was faster than."""
    rebased: int = 0
    """Commits that the server has put on top of others than their client had seen."""
    unknown: int = 0
    """Commits of unknown outcome."""
    slots_given: int = 0
    """Slots given to writers that had lost races, each time one was released to try again."""
    slots_used: int = 0
    """Slots in which the writer has landed."""
    slots_lost: int = 0
    """Slots in which the writer has lost once more."""
    slots_passed: int = 0
    """Slots in which the writer has not come."""
    loads_held: int = 0
    """Loads by writers that waited until no other writer was on its way."""
    landed_after_losses: int = 0
    """Commits that landed though their writer had lost two races or more."""
    gave_up: int = 0
    """Writers that have lost as often as their table's properties let them try again."""


@dataclass(frozen=True, slots=True)
class QueueState:
    """The queue of one table at one time."""

    queue_length: int = 0
    """Writers that wait or have a slot, on all servers."""
    longest_wait_ms: int = 0
    """Since when the first of them waits."""
    answers_held: int = 0
    """Refusals that this process holds back."""
    commits_at_gate: int = 0
    """Commits that wait in this process for the slots of others."""
    window_ms: float = 0.0
    """How long a writer takes from the end of its back-off to its commit, as learnt."""
    spacing_ms: float = 0.0
    """How long after each other slots open, as learnt."""
    interval_ms: float = 0.0
    """The time between two landings, as learnt."""


@dataclass(frozen=True, slots=True)
class TableTraffic:
    """The traffic on one table, since it was first counted."""

    warehouse: str
    identifier: TableIdentifier
    since_ms: int
    last_ms: int
    """When it was last counted; 0 if it never was."""
    counts: Counts
    landed_last_minute: int = 0
    refused_last_minute: int = 0
    most_together: int = 0
    """The most commits that one move of its pointer has landed."""
    queue: QueueState = QueueState()
    """Its queue as it was seen last."""


class _LastMinute:
    """How often something happened in the last sixty seconds."""

    __slots__ = ("_counts", "_second")

    def __init__(self) -> None:
        self._counts = [0] * _SECONDS
        self._second = 0

    def add(self, second: int, number: int) -> None:
        if number:
            self._go_on(second)
            self._counts[second % _SECONDS] += number

    def total(self, second: int) -> int:
        self._go_on(second)
        return sum(self._counts)

    def _go_on(self, second: int) -> None:
        if self._second - _SECONDS < second <= self._second:
            return
        # Later, or the clock was set back: what was counted by the other time would stay until it comes again.
        if abs(second - self._second) >= _SECONDS:
            self._counts = [0] * _SECONDS
        else:
            for passed in range(self._second + 1, second + 1):
                self._counts[passed % _SECONDS] = 0
        self._second = second


@dataclass(slots=True)
class _Entry:
    since_ms: int
    last_ms: int
    uuid: str = ""
    """The table's, once one of its commits has landed here."""
    counts: Counts = field(default_factory=Counts)
    most_together: int = 0
    queue: QueueState = QueueState()
    landed: _LastMinute = field(default_factory=_LastMinute)
    refused: _LastMinute = field(default_factory=_LastMinute)


class Traffic:
    """A bounded record of the busiest tables; safe to share between threads."""

    def __init__(self, now_ms: Callable[[], int], most_tables: int = MOST_TABLES) -> None:
        self._now_ms = now_ms
        self._most_tables = most_tables
        self._lock = threading.Lock()
        self._entries: OrderedDict[TableKey, _Entry] = OrderedDict()

    def count(self, table: TableKey, *, uuid: str = "", together: int = 0, **numbers: int) -> None:
        """Add numbers to the `Counts` of a table.

        Args:
            table: which.
            uuid: the table's, if it is known: what was counted of an earlier table of the name is forgotten.
            together: how many commits one move has landed.
            numbers: what to add, by the names of the fields.
        """
        now_ms = self._now_ms()
        second = now_ms // 1000
        with self._lock:
            entry = self._kept(table, now_ms)
            if uuid and entry.uuid not in ("", uuid):
                entry = self._entries[table] = _Entry(now_ms, now_ms)
            entry.uuid = uuid or entry.uuid
            entry.most_together = max(entry.most_together, together)
            for name, number in numbers.items():
                setattr(entry.counts, name, getattr(entry.counts, name) + number)
            entry.landed.add(second, numbers.get("landed", 0))
            entry.refused.add(second, numbers.get("refused", 0))

    def see_queue(self, table: TableKey, queue: QueueState) -> None:
        """Keep what a table's queue is like now."""
        with self._lock:
            self._kept(table, self._now_ms()).queue = queue

    def of(self, table: TableKey, uuid: str = "") -> TableTraffic:
        """Return the traffic on a table; all zeros if what is kept is another one's, or nothing."""
        with self._lock:
            entry = self._entries.get(table)
            if entry is None or (uuid and entry.uuid not in ("", uuid)):
                return TableTraffic(*table, since_ms=self._now_ms(), last_ms=0, counts=Counts())
            return self._shown(table, entry)

    def busiest(self, most: int, warehouse: str | None = None) -> list[TableTraffic]:
        """Return the tables with most traffic in the last minute, and then in all."""
        with self._lock:
            shown = [
                self._shown(table, entry)
                for table, entry in self._entries.items()
                if warehouse is None or table[0] == warehouse
            ]
        return heapq.nlargest(most, shown, key=_busyness)

    def _kept(self, table: TableKey, now_ms: int) -> _Entry:
        entry = self._entries.get(table)
        if entry is None:
            entry = self._entries[table] = _Entry(now_ms, now_ms)
            if len(self._entries) > self._most_tables:
                self._entries.popitem(last=False)
        self._entries.move_to_end(table)
        entry.last_ms = now_ms
        return entry

    def _shown(self, table: TableKey, entry: _Entry) -> TableTraffic:
        second = self._now_ms() // 1000
        counts = Counts(**{name: getattr(entry.counts, name) for name in Counts.__slots__})
        return TableTraffic(
            *table,
            since_ms=entry.since_ms,
            last_ms=entry.last_ms,
            counts=counts,
            landed_last_minute=entry.landed.total(second),
            refused_last_minute=entry.refused.total(second),
            most_together=entry.most_together,
            queue=entry.queue,
        )


def _busyness(traffic: TableTraffic) -> tuple[int, int, int]:
    recent = traffic.landed_last_minute + traffic.refused_last_minute
    return recent, traffic.counts.landed + traffic.counts.refused, traffic.last_ms

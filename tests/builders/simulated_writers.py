"""Writers on one table, simulated: they do what Iceberg's clients do, and time passes only by events.

Times are in milliseconds. The same seed gives the same course of events.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from app.catalog.slots.beginnings import Beginnings, Client
from app.catalog.slots.queue import Before, LandingQueue, RetryRules

HOLD_MS = 20_000
LOOK_MS = 15


@dataclass(frozen=True, slots=True)
class Load:
    """How many writers there are, how often each commits, and how long its steps take, each times 0.7 to 1.5."""

    writers: int
    rounds: int
    load_ms: float
    prepare_ms: float
    commit_ms: float
    slow: int = 0
    """So many of the writers take `slowness` times as long to prepare, as overwrites do."""
    slowness: float = 20
    vanishing: float = 0
    """The share of refused writers that never come back."""
    has_connections: bool = True
    """Whether a server knows connections of writers; behind a proxy nobody knows whose load it is."""
    shares_connections: bool = False
    """Whether each request takes the connection that was free last, as the threads of one client do."""
    plan_ms: float = 0
    """How long before its load a writer loads the table for the first time, as engines do when they plan."""
    lag_ms: float = 0
    """How late a server sees what another one did to the queue."""
    ask_ms: float = 0
    """How long a server waits for the database when it asks for the table, times 0.7 to 1.5."""
    servers: int = 1
    """Connections are spread over so many servers, which let their writers go in turn."""


@dataclass
class _Attempt:
    writer: int
    round: int
    number: int
    begun_ms: float
    base: int = 0
    connection: int = -1
    """Of its request that is on its way, or was last."""
    is_planned: bool = False

    @property
    def key(self) -> str:
        return f"{self.writer}.{self.round}"

    @property
    def client(self) -> Client:
        return "writers", self.connection


@dataclass
class Course:
    """What happened."""

    landed_at_ms: list[float] = field(default_factory=list)
    waits_ms: list[float] = field(default_factory=list)
    slow_waits_ms: list[float] = field(default_factory=list)
    attempts: int = 0
    gave_up: int = 0
    vanished: int = 0

    @property
    def per_second(self) -> float:
        """How many landed in a second."""
        return 1000 * len(self.landed_at_ms) / max(self.landed_at_ms)


@dataclass
class _Server:
    """What one server knows of its writers, and which of their loads it holds."""

    name: str
    beginnings: Beginnings
    loads: dict[Client, _Attempt] = field(default_factory=dict)
    lets_load_at: float = 0.0
    is_asking: bool = False


class Simulation:
    """One table and its writers; without a queue, every commit that lost its race is refused at once."""

    def __init__(self, load: Load, seed: int, *, with_slots: bool) -> None:
        self._load, self._chance = load, random.Random(seed)
        self.queue = LandingQueue() if with_slots else None
        self._servers = [
            _Server(f"server {number}", Beginnings())
            for number in range(load.servers if with_slots and load.has_connections else 0)
        ]
        self.course = Course()
        self._retries = RetryRules()
        self._now, self._head, self._busy_until = 1_000_000.0, 0, 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers, self._connections = itertools.count(), itertools.count()
        self._free: list[int] = []
        """Connections that no request is on; the one that was used last comes last."""
        self._at_gate: dict[str, _Attempt] = {}
        self._held: dict[str, _Attempt] = {}
        self._looks_at: float | None = None

    def run(self) -> Course:
        """Let all writers come to their end."""
        begun = self._now
        for writer in range(self._load.writers):
            self._later(self._chance.uniform(0, 2), self._begin(writer, 0))
        while self._events:
            self._now, _, event = heapq.heappop(self._events)
            event()
        self.course.landed_at_ms = [at - begun for at in self.course.landed_at_ms]
        return self.course

    def _later(self, delay_ms: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self._now + delay_ms, next(self._numbers), event))

    def _varied(self, ms: float) -> float:
        return ms * self._chance.uniform(0.7, 1.5)

    def _begin(self, writer: int, number: int) -> Callable[[], None]:
        return lambda: self._load_table(_Attempt(writer, number, 0, self._now))

    def _server(self, attempt: _Attempt) -> _Server | None:
        """Return the server that a connection leads to; None if no load is held."""
        return self._servers[attempt.connection % len(self._servers)] if self._servers else None

    def _connect(self, attempt: _Attempt) -> None:
        if self._load.shares_connections:
            attempt.connection = self._free.pop() if self._free else next(self._connections)
        else:
            attempt.connection = attempt.writer

    def _disconnect(self, attempt: _Attempt) -> None:
        self._free.append(attempt.connection)

    def _load_table(self, attempt: _Attempt) -> None:
        self._connect(attempt)
        server = self._server(attempt)
        if server is not None and server.beginnings.must_wait(
            attempt.client, self._now, may_begin=server.beginnings.may_begin(self._now)
        ):
            server.loads[attempt.client] = attempt
            self._let_load(server)
        else:
            self._load_now(attempt)

    def _let_load(self, server: _Server) -> None:
        """Do what `HeldLoads` does when it looks."""
        if server.is_asking:
            return
        now, beginnings = self._now, server.beginnings
        beginnings.forget_late(now)
        if self.queue is None or beginnings.may_begin(now) or beginnings.at_work:
            self._let_go(server)
            return
        lengthens = beginnings.may_lengthen(now)
        ask = partial(
            self.queue.take_lease,
            server.name,
            length_ms=beginnings.lease_ms(now),
            shortest_ms=beginnings.course_ms,
            lengthens=lengthens,
            has_lost=beginnings.has_lost,
        )
        took_ms = self._varied(self._load.ask_ms)

        def asked() -> None:
            taken_ms = ask(now_ms=round(self._now))
            assert self.queue is not None
            sharing = self.queue.sharing_at(round(self._now))

            def answered() -> None:
                server.is_asking = False
                for address, rest_ms in sharing.items():
                    beginnings.note_sharing(address, self._now + rest_ms)
                beginnings.note_lease(self._now, taken_ms, lengthens=lengthens)
                self._let_go(server)

            self._later(took_ms / 2, answered)

        server.is_asking = True
        self._later(took_ms / 2, asked)

    def _let_go(self, server: _Server) -> None:
        now, beginnings = self._now, server.beginnings
        may_begin = beginnings.may_begin(now)
        for client in beginnings.release(now, HOLD_MS, may_begin=may_begin):
            self._load_now(server.loads.pop(client))
        at = beginnings.next_ms(HOLD_MS)
        if at is not None and not beginnings.at_work:
            at = min(at, now + LOOK_MS)
        if at is not None and not now < server.lets_load_at <= at:
            server.lets_load_at = max(at, now + 1)
            self._later(server.lets_load_at - now, lambda: self._let_load(server))

    def _load_now(self, attempt: _Attempt) -> None:
        self._later(self._varied(self._load.load_ms), lambda: self._prepare(attempt))

    def _prepare(self, attempt: _Attempt) -> None:
        attempt.base = self._head
        self._disconnect(attempt)
        if self._load.plan_ms and not attempt.is_planned:
            attempt.is_planned = True
            self._later(self._varied(self._load.plan_ms), lambda: self._load_table(attempt))
            return
        slowness = self._load.slowness if attempt.writer < self._load.slow else 1
        self._later(self._varied(self._load.prepare_ms * slowness), lambda: self._commit(attempt))

    def _commit(self, attempt: _Attempt) -> None:
        self._connect(attempt)
        self._post(attempt)

    def _post(self, attempt: _Attempt) -> None:
        server = self._server(attempt)
        if server is not None:
            server.beginnings.note_commit(attempt.client, self._now)
        if self.queue is not None and attempt.base == self._head:
            until = self.queue.closed_until_ms(attempt.key, round(self._now))
            if until is not None:
                self._at_gate[attempt.key] = attempt
                self._later(until - self._now + 1 + self._load.lag_ms, lambda: self._post_again(attempt.key))
                return
        self._put(attempt)

    def _post_again(self, key: str) -> None:
        attempt = self._at_gate.pop(key, None)
        if attempt is not None:
            self._post(attempt)

    def _put(self, attempt: _Attempt) -> None:
        if attempt.base == self._head:
            self._head += 1
            self._busy_until = max(self._now, self._busy_until) + self._load.commit_ms
            self._later(self._busy_until - self._now, lambda: self._landed(attempt))
            if self.queue is not None:
                self.queue.land(attempt.key, round(self._now))
        elif self._is_refused_at_once(attempt):
            self._refused(attempt)
        else:
            self._held[attempt.key] = attempt
        for key in list(self._at_gate):
            self._later(self._chance.uniform(0, self._load.lag_ms), partial(self._post_again, key))
        self._look()

    def _is_refused_at_once(self, attempt: _Attempt) -> bool:
        known, server = Before(), self._server(attempt)
        if server is not None:
            self._end(attempt, has_lost=True)
            known = server.beginnings.known_of(attempt.client, self._now)
            server.beginnings.lease_until_ms = 0.0
        return self.queue is None or not self.queue.lose(
            attempt.key, self._retries, self._head + 1, round(self._now), known
        )

    def _end(self, attempt: _Attempt, *, has_lost: bool) -> None:
        server = self._server(attempt)
        if server is not None:
            server.beginnings.note_end(attempt.client, self._now, writer=attempt.key, has_lost=has_lost)
            self._let_load(server)

    def _look(self) -> None:
        if self.queue is None:
            return
        now = round(self._now)
        for key in self.queue.release(list(self._held), now, HOLD_MS):
            self._refused(self._held.pop(key))
        at = self.queue.next_release_ms(now, HOLD_MS)
        if at is not None and (self._looks_at is None or at < self._looks_at or self._looks_at <= self._now):
            self._looks_at = max(at, self._now + 1)
            self._later(self._looks_at - self._now, self._look)

    def _refused(self, attempt: _Attempt) -> None:
        self._disconnect(attempt)
        self.course.attempts += 1
        if attempt.number >= self._retries.count:
            self.course.gave_up += 1
            self._next(attempt)
        elif self._chance.random() < self._load.vanishing:
            self.course.vanished += 1
            self._next(attempt)
        else:
            attempt.number += 1
            wait_ms = self._retries.back_off_ms(attempt.number) * self._chance.uniform(1, 1.1)
            self._later(wait_ms, lambda: self._load_table(attempt))

    def _landed(self, attempt: _Attempt) -> None:
        self._end(attempt, has_lost=False)
        self._disconnect(attempt)
        self.course.attempts += 1
        self.course.landed_at_ms.append(self._now)
        is_slow = attempt.writer < self._load.slow
        waits = self.course.slow_waits_ms if is_slow else self.course.waits_ms
        waits.append(self._now - attempt.begun_ms)
        self._next(attempt)

    def _next(self, attempt: _Attempt) -> None:
        if attempt.round + 1 < self._load.rounds:
            self._later(self._chance.uniform(0, 2), self._begin(attempt.writer, attempt.round + 1))

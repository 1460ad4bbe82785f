"""What is measured: modes, set-ups, cases, and what was found in each of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Mode(Enum):
    """How the server deals with writers that lose their races."""

    OFF = "slots off"
    ON = "slots on"
    REBASE = "rebase on"
    PEER = "fixture"


class SetUp(Enum):
    """A database and a number of server processes."""

    SQLITE_1 = "sqlite-1"
    SQLITE_2 = "sqlite-2"
    POSTGRES_1 = "postgres-1"
    POSTGRES_2 = "postgres-2"

    @property
    def is_postgres(self) -> bool:
        return self in (SetUp.POSTGRES_1, SetUp.POSTGRES_2)

    @property
    def processes(self) -> int:
        return 2 if self in (SetUp.SQLITE_2, SetUp.POSTGRES_2) else 1

    @property
    def title(self) -> str:
        """Its name in tables and plots."""
        database = "Postgres" if self.is_postgres else "SQLite"
        return f"{database}, {'one process' if self.processes == 1 else 'two processes'}"


@dataclass(frozen=True, slots=True)
class Case:
    """Some writers on one new table."""

    set_up: SetUp
    latency_ms: int
    writers: int
    mode: Mode
    is_herd: bool
    """All begin at the same moment and commit once; otherwise each goes on until the time is over."""

    @property
    def where(self) -> str:
        """Set-up and storage in words."""
        return f"{self.set_up.title}, {storage(self.latency_ms)}"


def storage(latency_ms: int) -> str:
    """Return what the files are on, in words."""
    return f"{latency_ms} ms storage" if latency_ms else "local files"


@dataclass(frozen=True, slots=True)
class Busy:
    """Processor time used a second: 1 is one core."""

    servers: float
    """All server processes together."""
    clients: float
    database: float

    @property
    def cores(self) -> float:
        return self.servers + self.clients + self.database

    def bound(self, processes: int, cores: int) -> str:
        """Return what the rate is bound by, in a few words, for a machine with so many cores."""
        if self.cores >= 0.9 * cores:
            return f"all {cores} cores"
        if self.servers >= 0.8 * processes:
            return "server processor"
        if self.clients >= 0.8:
            return "clients' processor"
        if self.cores >= 0.8:
            return "processors in turn"
        return "waiting"


@dataclass(frozen=True, slots=True)
class Measured:
    """What was found in a case."""

    case: Case
    landed: int
    gave_up: int
    attempts: int
    rate: float
    """Landed commits a second."""
    waits_s: tuple[float, ...]
    """For each commit that landed, from its first load on; in ascending order."""
    busy: Busy

    @property
    def begun(self) -> int:
        return self.landed + self.gave_up

    @property
    def lost(self) -> float:
        """The part of the commits whose writers gave up."""
        return self.gave_up / max(1, self.begun)

    @property
    def attempts_each(self) -> float:
        """Attempts for one commit that was begun."""
        return self.attempts / max(1, self.begun)

    @property
    def shares(self) -> float:
        """The longest wait, in fair shares: the time in which as many commits land as there are writers."""
        return self.wait_s(1.0) * self.rate / self.case.writers

    def wait_s(self, part: float) -> float:
        """Return the time in which this part of the commits had landed; 0 if there is none."""
        if not self.waits_s:
            return 0.0
        return self.waits_s[min(len(self.waits_s) - 1, int(part * len(self.waits_s)))]


@dataclass(frozen=True, slots=True)
class AppendCase:
    """Some clients that append by reference to one new table."""

    set_up: SetUp
    clients: int
    files: int
    """In each request."""
    has_metrics: bool
    """Counts and bounds of ten columns are given for each file, and not only its size and rows."""


@dataclass(frozen=True, slots=True)
class MeasuredAppends:
    """What was found."""

    case: AppendCase
    appends: int
    seconds: float
    waits_s: tuple[float, ...]
    """For each append, how long its answer took; in ascending order."""
    snapshots: int
    """That the table had at the end: appends that came together are one."""
    busy: Busy

    @property
    def rate(self) -> float:
        return self.appends / self.seconds

    def wait_s(self, part: float) -> float:
        """Return the time in which this part of the appends was answered."""
        return self.waits_s[min(len(self.waits_s) - 1, int(part * len(self.waits_s)))]

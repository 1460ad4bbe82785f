"""Which cases a run measures, and for how long."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from benchmarks.contention.cases import AppendCase, SetUp

SUSTAINED, HERDS, APPENDS, FIXTURE = PARTS = ("sustained", "herds", "appends", "fixture")


@dataclass(frozen=True, slots=True)
class Sweep:
    """Numbers of writers in one set-up, with one storage latency."""

    set_up: SetUp
    latency_ms: int
    writers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    sustained: tuple[Sweep, ...]
    herds: tuple[Sweep, ...]
    appends: tuple[AppendCase, ...]
    fixture: tuple[int, ...]
    """Writers that the peer gets, on local files: sustained, and those from 32 on as herds, too."""
    seconds: dict[int, float]
    """How long a sustained load lasts, by storage latency in milliseconds."""
    append_seconds: float

    def only(
        self,
        *,
        parts: Collection[str],
        set_ups: Collection[SetUp],
        latencies_ms: Collection[int],
        writers: Collection[int],
        seconds: float | None,
    ) -> Plan:
        """Return a part of the plan; what is empty or None restricts nothing."""

        def of(part: str, sweeps: tuple[Sweep, ...]) -> tuple[Sweep, ...]:
            if parts and part not in parts:
                return ()
            kept = [
                replace(sweep, writers=tuple(n for n in sweep.writers if not writers or n in writers))
                for sweep in sweeps
                if not set_ups or sweep.set_up in set_ups
                if not latencies_ms or sweep.latency_ms in latencies_ms
            ]
            return tuple(sweep for sweep in kept if sweep.writers)

        is_fixture_wanted = not parts or FIXTURE in parts
        return Plan(
            of(SUSTAINED, self.sustained),
            of(HERDS, self.herds),
            tuple(
                case
                for case in self.appends
                if not parts or APPENDS in parts
                if not set_ups or case.set_up in set_ups
                if not writers or case.clients in writers
            ),
            tuple(n for n in self.fixture if is_fixture_wanted and (not writers or n in writers)),
            self.seconds if seconds is None else dict.fromkeys(self.seconds, seconds),
            self.append_seconds if seconds is None else seconds,
        )


def _appends(set_ups: tuple[SetUp, ...], kinds: tuple[tuple[int, int, bool], ...]) -> tuple[AppendCase, ...]:
    return tuple(AppendCase(set_up, *kind) for set_up in set_ups for kind in kinds)


_ENDS = (SetUp.SQLITE_1, SetUp.POSTGRES_2)
_BETWEEN = (SetUp.SQLITE_2, SetUp.POSTGRES_1)

WHOLE = Plan(
    sustained=(
        *(Sweep(SetUp.SQLITE_1, latency, (1, 2, 8, 32, 64)) for latency in (0, 20, 60)),
        *(Sweep(SetUp.POSTGRES_2, latency, (1, 8, 32, 64)) for latency in (0, 20, 60)),
        *(Sweep(set_up, 0, (8, 32, 64)) for set_up in _BETWEEN),
        *(Sweep(set_up, 60, (32,)) for set_up in _BETWEEN),
    ),
    herds=(
        *(Sweep(set_up, latency, (32, 64)) for set_up in _ENDS for latency in (0, 20, 60)),
        *(Sweep(set_up, 0, (32, 64)) for set_up in _BETWEEN),
    ),
    appends=_appends(
        _ENDS,
        ((1, 1, False), (8, 1, False), (64, 1, False), (64, 1, True), (64, 10, False), (64, 100, False)),
    ),
    fixture=(1, 2, 8, 32, 64),
    seconds={0: 4.0, 20: 6.0, 60: 8.0},
    append_seconds=5.0,
)
QUICK = Plan(
    sustained=(
        Sweep(SetUp.SQLITE_1, 0, (1, 8, 32)),
        Sweep(SetUp.SQLITE_1, 60, (32,)),
        Sweep(SetUp.POSTGRES_2, 0, (32,)),
    ),
    herds=(Sweep(SetUp.SQLITE_1, 0, (32,)), Sweep(SetUp.POSTGRES_2, 0, (32,))),
    appends=_appends(_ENDS, ((64, 1, False), (64, 100, False))),
    fixture=(8, 32),
    seconds={0: 3.0, 60: 6.0},
    append_seconds=3.0,
)

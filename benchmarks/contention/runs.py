"""Runs cases, one after the other, and shows each as it is done."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx

from benchmarks.contention.append_clients import AppendOrders, append_all
from benchmarks.contention.cases import AppendCase, Case, Measured, MeasuredAppends, Mode, SetUp
from benchmarks.contention.fixture.server import fixture
from benchmarks.contention.places import Place, place
from benchmarks.contention.plan import Plan, Sweep
from tests.builders.contending_writers import Orders, run_writers
from tests.servers.postgres import PostgresServer

HERD_SECONDS = 120.0
MOST_APPENDS_A_SECOND = 2500
MOST_FILES = 120_000
"""Of one run of appends: they are made before it."""
_names = (f"t{number}" for number in itertools.count())


def run_sweeps(plan: Plan, folder: Path, postgres: PostgresServer, failed: list[str]) -> Iterator[Measured]:
    """Measure every mode in every sweep; modes that are compared run right after each other.

    A case in which something failed is added to `failed`, and the next one goes on; so in all functions here.
    """
    grouped: dict[tuple[SetUp, int], list[tuple[Sweep, bool]]] = {}
    for sweeps, is_herd in ((plan.sustained, False), (plan.herds, True)):
        for sweep in sweeps:
            grouped.setdefault((sweep.set_up, sweep.latency_ms), []).append((sweep, is_herd))
    for (set_up, latency), group in grouped.items():
        with ExitStack() as running:
            without, with_slots = (
                running.enter_context(
                    place(
                        folder / f"{set_up.value}-{latency}-{has_slots}",
                        set_up,
                        latency,
                        has_slots=has_slots,
                        postgres=postgres,
                    )
                )
                for has_slots in (False, True)
            )
            for sweep, is_herd in group:
                for writers in sweep.writers:
                    for mode in (Mode.OFF, Mode.ON, Mode.REBASE):
                        where = without if mode is Mode.OFF else with_slots
                        case = Case(set_up, latency, writers, mode, is_herd)
                        yield from _run(where, case, plan.seconds[latency], failed)


def run_fixture(plan: Plan, folder: Path, failed: list[str]) -> Iterator[Measured]:
    """Measure the peer.

    Raises:
        NoFixtureError: it cannot be had.
    """
    if not plan.fixture:
        return
    with fixture(folder / "fixture") as where:
        # A JVM that has done nothing yet is slow.
        _measure(where, Case(SetUp.SQLITE_1, 0, 8, Mode.PEER, is_herd=False), plan.seconds[0])
        for is_herd in (False, True):
            for writers in plan.fixture:
                if writers >= 32 or not is_herd:
                    case = Case(SetUp.SQLITE_1, 0, writers, Mode.PEER, is_herd)
                    yield from _run(where, case, plan.seconds[0], failed)


def run_appends(
    plan: Plan, folder: Path, postgres: PostgresServer, failed: list[str]
) -> Iterator[MeasuredAppends]:
    """Measure appends by reference."""
    for set_up, cases in itertools.groupby(plan.appends, key=lambda case: case.set_up):
        with place(folder / f"appends-{set_up.value}", set_up, 0, has_slots=True, postgres=postgres) as where:
            for case in cases:
                try:
                    yield _append(where, case, plan.append_seconds)
                except RuntimeError as error:
                    failed.append(f"{case}: {error}")


def _run(where: Place, case: Case, seconds: float, failed: list[str]) -> Iterator[Measured]:
    try:
        yield _measure(where, case, seconds)
    except RuntimeError as error:
        failed.append(f"{case}: {error}")


def _measure(where: Place, case: Case, seconds: float) -> Measured:
    properties = {"icetower.rebase": "appends"} if case.mode is Mode.REBASE else {}
    orders = Orders(
        where.urls,
        where.make_table(next(_names), properties),
        case.writers,
        HERD_SECONDS if case.is_herd else seconds,
        case.latency_ms / 1000,
        rounds=1 if case.is_herd else None,
        store=where.store,
    )
    busy = where.watch()
    found = run_writers(orders)
    # What lands after the time is over has fewer and fewer rivals.
    in_time = sum(landed_at <= seconds for landed_at in found.landed_at)
    rate = found.landed / max(found.seconds, 0.001) if case.is_herd else in_time / seconds
    return Measured(
        case,
        found.landed,
        found.gave_up,
        found.attempts,
        rate,
        tuple(sorted(found.waits)),
        busy(found.processor_s, found.lasted_s),
    )


def _append(where: Place, case: AppendCase, seconds: float) -> MeasuredAppends:
    path = where.make_table(next(_names), {})
    with httpx.Client(base_url=where.urls[0]) as http:
        location = http.get(path).json()["metadata"]["location"]
        orders = AppendOrders(
            where.urls,
            path,
            location,
            case.clients,
            seconds,
            case.files,
            case.has_metrics,
            most=min(round(MOST_APPENDS_A_SECOND * seconds), MOST_FILES // case.files),
        )
        busy = where.watch()
        found = append_all(orders)
        used = busy(found.processor_s, found.seconds)
        snapshots = len(http.get(path).json()["metadata"]["snapshots"])
    return MeasuredAppends(case, len(found.waits), found.seconds, tuple(sorted(found.waits)), snapshots, used)

"""`python -m benchmarks.contention`: measures, prints each row as it is done, and writes the page and its plot."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.contention.cases import Measured, MeasuredAppends, SetUp
from benchmarks.contention.fixture.server import NoFixtureError
from benchmarks.contention.page import append_line, line, page
from benchmarks.contention.plan import PARTS, QUICK, WHOLE, Plan
from benchmarks.contention.plot import plot
from benchmarks.contention.runs import run_appends, run_fixture, run_sweeps
from tests.servers.postgres import PostgresServer

DOCS = Path(__file__).parents[2] / "docs"
PAGE, PLOT = "contention.md", "contention.svg"
ROUGH = "**A quick run with few cases of a few seconds: a rough picture only.**"


def main() -> None:
    """Measure what the arguments say."""
    arguments = _arguments()
    narrowed = any(vars(arguments)[name] for name in ("parts", "set_ups", "latencies", "writers", "seconds"))
    plan = (QUICK if arguments.quick else WHOLE).only(
        parts=arguments.parts or (),
        set_ups=arguments.set_ups or (),
        latencies_ms=arguments.latencies or (),
        writers=arguments.writers or (),
        seconds=arguments.seconds,
    )
    begun_s = time.monotonic()
    found, appends, no_fixture, failed = _measure(plan)
    folder = arguments.output or (None if narrowed else DOCS)
    drawn = plot(found, "Many writers on one table")
    text = page(
        found,
        appends,
        command="make bench-contention" + (" ARGS=--quick" if arguments.quick else ""),
        remark=ROUGH if arguments.quick or narrowed else "",
        no_fixture=no_fixture,
        failed=failed,
        plot_name=PLOT if drawn else None,
    )
    print(f"\n{time.monotonic() - begun_s:.0f} s", flush=True)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / PAGE).write_text(text, encoding="utf-8")
        if drawn is not None:
            (folder / PLOT).write_text(drawn, encoding="utf-8")
        print(f"written: {folder / PAGE}")
    if failed:
        sys.exit("\n".join(f"failed: {what}" for what in failed))


def _measure(plan: Plan) -> tuple[list[Measured], list[MeasuredAppends], str | None, list[str]]:
    """Return what was found with writers and with appends, why there is no peer, and what failed."""
    found: list[Measured] = []
    appends: list[MeasuredAppends] = []
    no_fixture: str | None = None
    failed: list[str] = []
    where = ""
    with tempfile.TemporaryDirectory(prefix="icetower-bench-") as temporary, PostgresServer() as postgres:
        folder = Path(temporary)

        def show(one: Measured) -> None:
            nonlocal where
            if where != (where := f"{one.case.where}{', herds' if one.case.is_herd else ''}"):
                print(f"\n{where}", flush=True)
            found.append(one)
            print(line(one, found), flush=True)

        for one in run_sweeps(plan, folder, postgres, failed):
            show(one)
        try:
            for one in run_fixture(plan, folder, failed):
                show(one)
        except NoFixtureError as error:
            no_fixture = str(error)
            print(f"\nNo fixture: {no_fixture}", flush=True)
        for appended in run_appends(plan, folder, postgres, failed):
            appends.append(appended)
            print(append_line(appended), flush=True)
    return found, appends, no_fixture, failed


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.contention",
        description="Measure many writers on one table, and write docs/contention.md with its plot. "
        "Narrowed to a part, it only prints.",
    )
    parser.add_argument("--quick", action="store_true", help="few cases, a few seconds each")
    parser.add_argument("--parts", nargs="+", choices=PARTS)
    parser.add_argument(
        "--set-ups", nargs="+", type=SetUp, metavar="SET_UP", help=", ".join(s.value for s in SetUp)
    )
    parser.add_argument("--latencies", nargs="+", type=int, metavar="MS", help="0, 20, 60")
    parser.add_argument("--writers", nargs="+", type=int, metavar="N", help="1, 2, 8, 32, 64")
    parser.add_argument("--seconds", type=float, help="how long each sustained load lasts")
    parser.add_argument("--output", type=Path, help="write page and plot into this folder")
    return parser.parse_args()


if __name__ == "__main__":
    main()

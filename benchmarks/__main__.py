"""Runs the benchmarks: all of them, or those that are named."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    bulkheads,
    commits,
    conflicts,
    expiry,
    guard,
    health,
    imports,
    listings,
    loads,
    manifest_rewrites,
    manifests,
    orphans,
    past,
    peers,
    planning,
    rebuild,
    sizes,
    starts,
    upkeep,
)
from benchmarks.report import RESULTS, Row, page, table
from tests.servers.postgres import PostgresServer


def main(names: list[str]) -> None:
    """Print each table as it is measured; when all were, write them to RESULTS.md.

    One that fails does not keep those after it from being measured.
    """
    with tempfile.TemporaryDirectory(prefix="icetower-bench-") as temporary, PostgresServer() as postgres:
        folder = Path(temporary)

        def database() -> str:
            return postgres.url(postgres.create_database())

        known: dict[str, tuple[str, Callable[[], list[Row]]]] = {
            "loads": ("Loading", lambda: loads.measure(folder, database())),
            "commits": ("Committing", lambda: commits.measure(folder, database)),
            "peers": ("Beside other catalogs", lambda: peers.measure(folder, database)),
            "bulkheads": ("Beside something sick", lambda: bulkheads.measure(folder, database())),
            "sizes": ("Cost against size", lambda: sizes.measure(folder)),
            "listings": ("Listing", lambda: listings.measure(folder, database())),
            "past": ("Listing as of a time", lambda: past.measure(folder, database())),
            "expiry": ("Expiring snapshots", lambda: expiry.measure(folder)),
            "orphans": ("Orphan files", lambda: orphans.measure(folder)),
            "rebuild": ("Rebuilding a catalog", lambda: rebuild.measure(folder)),
            "imports": ("Importing tables", lambda: imports.measure(folder, database())),
            "planning": ("Planning scans", lambda: planning.measure(folder)),
            "health": ("Health of a large table", lambda: health.measure(folder)),
            "rewrites": ("Rewriting manifests", lambda: manifest_rewrites.measure(folder)),
            "upkeep": ("What upkeep is worth", lambda: upkeep.measure(folder)),
            "manifests": (
                "Manifests, in entries a second of processor time",
                lambda: manifests.measure(folder),
            ),
            "guard": ("Guarding commits", lambda: guard.measure(folder)),
            "conflicts": ("Conflict checks and diffs", lambda: conflicts.measure(folder)),
            "starts": ("Starting", lambda: starts.measure(folder)),
        }
        unknown = set(names) - known.keys()
        if unknown:
            sys.exit(f"unknown: {', '.join(sorted(unknown))}; known are: {', '.join(known)}")
        sections, failed = [], []
        for name in names or known:
            title, measure = known[name]
            try:
                sections.append(table(title, measure()))
            except RuntimeError as error:
                failed.append(f"failed: {name}: {error}")
                print(f"{failed[-1]}\n", flush=True)
            else:
                print(f"{sections[-1]}\n", flush=True)
        if failed:
            sys.exit("\n".join(failed))
        if not names:
            RESULTS.write_text(page(sections, "make bench"), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

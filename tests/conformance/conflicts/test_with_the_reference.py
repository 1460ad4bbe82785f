"""Our verdict on an operation is what becomes of its commit in the reference."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from app.engine.conflicts.detection import detect_conflicts
from app.engine.model.ids import SnapshotId
from tests.conformance.conflicts.histories import SCHEMA, SPECS, World
from tests.conformance.conflicts.reference import Reference, Refused, commit

pytestmark = pytest.mark.spark

IS_NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
CASES = 150 if IS_NIGHTLY else 20
"""Each makes a table, a base, one to four concurrent commits and one commit that may collide with them."""


@pytest.mark.parametrize("format_version", [2, 3])
@pytest.mark.parametrize("spec", range(len(SPECS)))
def test_random_histories(reference: Reference, format_version: int, spec: int) -> None:
    # A new seed each night; a failure names all that it takes to repeat the case by hand.
    rng = random.Random(None if IS_NIGHTLY else 100 * format_version + spec)
    ended: Counter[tuple[str, bool]] = Counter()
    for case in range(CASES):
        table = reference.new_table(
            SCHEMA,
            {"spec-id": 0, "fields": SPECS[spec]},
            {
                "format-version": str(format_version),
                "commit.manifest.min-count-to-merge": str(rng.choice([2, 100])),
            },
        )
        world = World(table, rng, format_version)
        if rng.random() < 0.95:
            commit(world.append().pending)
            if rng.random() < 0.3:
                world.evolve()
            for _ in range(rng.randint(0, 2)):
                world.concurrently()
        base_id = world.base()
        change = world.change()
        happened = [world.concurrently() for _ in range(rng.randint(1, 4))]
        metadata = table.metadata()

        report = detect_conflicts(
            metadata, table.source, "main", None if base_id is None else SnapshotId(base_id), change.operation
        )

        try:
            commit(change.pending)
            words = ""
        except Refused as refused:
            words = str(refused)
        where = (
            f"case {case}: {change.operation} from {base_id} after {happened}: the reference says {words!r}"
        )
        assert report.would_conflict == bool(words), (
            f"{where}, we say {[item.message for item in report.conflicts]}"
        )
        ended[change.name.partition(" ")[0], bool(words)] += 1
    # Neither verdict may have come out of hardly ever asking.
    assert sum(count for (_, refused), count in ended.items() if refused) > CASES // 6, ended
    assert sum(count for (_, refused), count in ended.items() if not refused) > CASES // 6, ended

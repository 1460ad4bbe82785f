"""Which tests stay together in one process of a run, and which begin first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

SPARK = "tests/e2e/spark/"
"""All its tests share a session of Spark: a second one takes minutes until it is as quick, and a GiB of memory."""

LONG = (
    SPARK,
    "tests/e2e/",
    "tests/crash/",
    "tests/concurrency/",
    "tests/conformance/",
    "tests/property/",
    "tests/testing_plugin/",
)
"""Where a file takes minutes, longest first: at the end of a run no process waits long for another."""


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Gives all tests of a file to one process, so that what its tests share is made once."""

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Take the ids of the tests that a process has found."""
        if twice := [name for name, count in Counter(collection).items() if count > 1]:
            raise pytest.UsageError(f"of tests with the same id only the first would run: {', '.join(twice)}")
        super().add_node_collection(node, collection)

    def _split_scope(self, nodeid: str) -> str:
        return SPARK if nodeid.startswith(SPARK) else str(super()._split_scope(nodeid))

    def _assign_work_unit(self, node: Any) -> None:
        self.workqueue.move_to_end(min(self.workqueue, key=_place), last=False)
        super()._assign_work_unit(node)


def _place(unit: str) -> int:
    return next((place for place, folder in enumerate(LONG) if unit.startswith(folder)), len(LONG))

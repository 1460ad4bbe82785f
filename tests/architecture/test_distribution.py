"""Which tests pytest-xdist runs in one process, and that each has an id of its own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from schemathesis.pytest.plugin import SchemathesisFunction
from xdist.remote import Producer

from tests.distribution import SPARK, ByFile

IDS = [
    "tests/unit/test_main.py::test_a",
    *(f"tests/unit/test_lines.py::test_b[{number}]" for number in range(3)),
    "tests/crash/test_receipts.py::test_c",
    f"{SPARK}test_views.py::test_d",
    "tests/unit/test_main.py::test_e",
    f"{SPARK}test_writing.py::test_f",
    "tests/crash/test_receipts.py::test_g",
]


class Worker:
    """A process of a run that notes what it is sent."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.sent: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.sent.extend(indices)

    def shutdown(self) -> None:
        self.shutting_down = True


def test_a_file_stays_in_one_process_and_long_ones_come_first() -> None:
    scheduler = _scheduler()
    workers = [Worker("first"), Worker("second")]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, IDS)

    scheduler.schedule()
    while not all(worker.shutting_down for worker in workers):
        for worker in workers:
            for index in worker.sent:
                scheduler.mark_test_complete(worker, index)

    files = [[IDS[index].split("::")[0] for index in worker.sent] for worker in workers]
    assert files[0][:2] == [f"{SPARK}test_views.py", f"{SPARK}test_writing.py"]
    assert files[1][:2] == ["tests/crash/test_receipts.py"] * 2
    assert set(files[0]).isdisjoint(files[1])
    assert sorted(index for worker in workers for index in worker.sent) == list(range(len(IDS)))


def test_tests_with_the_same_id_are_refused() -> None:
    scheduler, worker = _scheduler(), Worker("first")
    scheduler.add_node(worker)

    with pytest.raises(pytest.UsageError, match=r"with the same id only the first would run: .*::test_g$"):
        scheduler.add_node_collection(worker, [*IDS, IDS[-1]])


def test_operations_that_are_fuzzed_have_ids_of_their_own(request: pytest.FixtureRequest) -> None:
    parent = request.node.parent
    items = [
        SchemathesisFunction.from_parent(
            parent, name=f"test_x[{label}]", callobj=_scheduler, test_func=_scheduler, originalname="test_x"
        )
        for label in ("GET /v1/config", "GET /v1/views")
    ]
    for item in items:
        request.config.hook.pytest_itemcollected(item=item)

    assert [item.nodeid.partition("::")[2] for item in items] == [
        "test_x[GET /v1/config]",
        "test_x[GET /v1/views]",
    ]


def _scheduler() -> ByFile:
    config = SimpleNamespace(
        option=SimpleNamespace(loadscopereorder=True), getvalue=lambda name: {"tx": ["2*popen"]}[name]
    )
    return ByFile(config, Producer("", enabled=False))

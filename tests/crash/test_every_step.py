"""Every step of every mutation fails once: the answer, the receipt and a repetition are true, and no file is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.fileio.local import LocalFiles
from tests.builders.databases import migrated_database_of
from tests.builders.faults import Fault, Faults, FaultyFiles, Step, faulty_postgres, faulty_sqlite
from tests.builders.http_catalog import http_catalog, make_namespace
from tests.crash.ground import Ground, Request
from tests.crash.mutations import (
    MUTATIONS,
    NIGHTLY,
    ONCE_WITHOUT_KEYS,
    WITHOUT_KEYS,
    WITHOUT_RECEIPTS,
)
from tests.crash.shapes import Shape, shape_of

pytestmark = [
    pytest.mark.slow,
    # Threads of a process that counts as dead end as they please.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]
Mutation = Callable[[Ground], Request]
_HAS_EFFECT = ("COMMIT", "write_new", "write_once", "delete")
_SOMETIMES = "SELECT warehouses."
"""What a server reads again after a second."""
UNKNOWN = "CommitStateUnknownException"


class House:
    """A server whose steps fail, on one database and one warehouse; a dead one is followed by another."""

    def __init__(self, folder: Path, faults: Faults, settings: dict[str, Any]) -> None:
        self.faults = faults
        self._folder = folder
        self._settings = settings
        self._running = ExitStack()
        self._number = 0
        self.client: httpx.Client
        self._start()

    def _start(self) -> None:
        serving = http_catalog(
            self._folder, files_of=lambda _: FaultyFiles(LocalFiles(), self.faults), **self._settings
        )
        self.client = self._running.enter_context(serving)

    def ground(self) -> Ground:
        """Make a namespace of its own for one try."""
        self._number += 1
        namespace = f"n{self._number}"
        make_namespace(self.client, namespace)
        return Ground(self.client, namespace)

    def revive(self) -> None:
        """Begin a new process if this one counts as dead."""
        if self.faults.is_dead:
            self.stop()
            self.faults.bury()
            self._start()
        self.faults.bury()

    def stop(self) -> None:
        self._running.close()


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.nightly])]
)
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    faults, faulty, settings = Faults(), faulty_sqlite, dict[str, Any]()
    if request.param == "postgres":
        postgres = request.getfixturevalue("postgres_server")
        faulty, settings = faulty_postgres, {"database_url": postgres.url(migrated_database_of(postgres))}
    with faulty(faults):
        running = House(tmp_path, faults, settings)
        try:
            yield running
        finally:
            running.faults.bury()
            running.stop()


def faults_of(step: Step) -> list[Fault]:
    """Return the ways in which a step can fail that differ from each other."""
    if step.name == "COMMIT":
        return list(Fault)
    if step.name.split(maxsplit=1)[0] in _HAS_EFFECT:
        return [Fault.REFUSED, Fault.ANSWER_LOST, Fault.OUTAGE, Fault.DIED_AFTER]
    return [Fault.REFUSED]


class Try:
    """One request of which one step fails."""

    def __init__(self, house: House, mutation: Mutation, shapes: tuple[Shape, Shape]) -> None:
        self._house, self._mutation = house, mutation
        self._before, self._after = shapes
        self._on = house.ground()
        self._request = mutation(self._on)
        self._key = None if mutation in WITHOUT_KEYS else f"key-{self._on.ns}"

    def run(self, step: Step, fault: Fault) -> None:
        faults = self._house.faults
        with faults.at(step, fault):
            answer = self._request.send(self._house.client, self._key)
        is_reached = faults.has_failed or step.name.startswith(_SOMETIMES)
        assert is_reached, f"the step was not reached: {faults.steps}"
        is_dead = faults.is_dead
        self._house.revive()
        shape = self._shape()
        assert shape in (self._before, self._after)
        has_landed = shape == self._after
        if not is_dead:
            self._check_answer(answer, has_landed=has_landed)
        self._check_receipt(answer, has_landed=has_landed, is_dead=is_dead)
        if has_landed and self._mutation in ONCE_WITHOUT_KEYS:
            again = self._request.send(self._house.client)
            assert again.status_code in (200, 204, 409, 500), again.text
            assert self._shape() == self._after
        self._send_again(has_landed=has_landed)

    def _shape(self) -> Shape:
        return shape_of(self._house.client, self._on.ns)

    def _check_answer(self, answer: httpx.Response, *, has_landed: bool) -> None:
        if answer.status_code < 300:
            assert has_landed
        elif answer.status_code == 503:
            assert not has_landed, answer.text
        else:
            assert (answer.status_code, answer.json()["error"]["type"]) == (500, UNKNOWN), answer.text

    def _check_receipt(self, answer: httpx.Response, *, has_landed: bool, is_dead: bool) -> None:
        if self._mutation in WITHOUT_RECEIPTS:
            return
        commit_id = answer.headers["x-icetower-commit-id"]
        receipt = self._house.client.get(f"/v1/commits/{commit_id}")
        outcome = receipt.json()["outcome"] if receipt.status_code == 200 else receipt.status_code
        wanted = {"landed"} if has_landed else {"failed", 404}
        if is_dead and not has_landed:
            # Where half a second had passed, the server had said that it is at work: nobody knows yet that it died.
            wanted.add("in-progress")
        assert outcome in wanted, receipt.text

    def _send_again(self, *, has_landed: bool) -> None:
        again = self._request.send(self._house.client, self._key)
        if self._key is not None or not has_landed:
            assert again.status_code in (200, 204), again.text
        if self._key is not None:
            assert ("idempotent-replayed" in again.headers) is has_landed
        assert self._shape() == self._after


@pytest.mark.parametrize(
    "mutation",
    [
        pytest.param(each, marks=[pytest.mark.nightly] if each in NIGHTLY else [], id=each.__name__)
        for each in MUTATIONS
    ],
)
def test_mutation_whose_steps_fail(house: House, mutation: Mutation) -> None:
    shapes, steps = rehearse(house, mutation)

    wrong: list[str] = []
    for step in steps:
        for fault in faults_of(step):
            try:
                Try(house, mutation, shapes).run(step, fault)
            except (AssertionError, httpx.HTTPError) as error:
                wrong.append(f"{step}, {fault.value}: {error}")
            house.revive()

    assert not wrong, "\n".join(wrong)


def rehearse(house: House, mutation: Mutation) -> tuple[tuple[Shape, Shape], list[Step]]:
    """Return what the mutation finds and what it leaves, and its steps."""
    shapes: Any = ()
    # The first request of a process has steps that the others have not.
    for _ in range(2):
        on = house.ground()
        request = mutation(on)
        before = shape_of(house.client, on.ns)
        with house.faults.at():
            answer = request.send(house.client, None if mutation in WITHOUT_KEYS else f"key-{on.ns}")
        assert answer.status_code in (200, 204), answer.text
        shapes = before, shape_of(house.client, on.ns)
        assert shapes[0] != shapes[1]
    return shapes, house.faults.steps

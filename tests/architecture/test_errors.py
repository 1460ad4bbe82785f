"""The tree of deliberate errors, and its table of statuses and types."""

from __future__ import annotations

import ast
import inspect
import re

import pytest

import app.errors
from app.api.error_responses import STATUS_AND_TYPE
from app.errors import IcetowerError
from tests.architecture.source_files import parsed, python_files, shown

ERRORS = {
    name: kind
    for name, kind in vars(app.errors).items()
    if inspect.isclass(kind) and issubclass(kind, IcetowerError)
}
LEAVES = [kind for kind in ERRORS.values() if not kind.__subclasses__()]
TREE = app.errors.__doc__ or ""

CATCHING_EVERYTHING = {
    "app/database/connections/shared_writes.py": "each write has its error raised in its own thread",
    "app/catalog/context/seen/receipt_book.py": "the outermost handler of the thread that writes receipts",
    "app/catalog/context/threads/crew.py": "the error is raised again where the work is waited for",
    "app/catalog/context/threads/convoys.py": "each request has its error raised where it waits",
    "app/catalog/context/threads/side_work.py": "the error is raised again where the work is waited for",
    "app/catalog/context/threads/side_by_side.py": "an error of a wait is raised by the one who waits",
    "app/catalog/deletions/queue.py": "what becomes of an entry is noted, so that people see that it waits",
    "app/catalog/deletions/housekeeping.py": "the outermost handler of the housekeeping thread",
    "app/api/entrance/front_door.py": "the outermost handler, which answers every failure",
    "app/catalog/commits/guard.py": "a mistake in the guard must not fail the commits it watches",
    "app/catalog/commits/wishes.py": "a mistake in one request must not fail those that land with it",
    "app/maintenance/spark/spark_failures.py": "Spark's errors have no common parent, and each is how a job ends",
    "app/maintenance/spark/spark_sessions.py": "what the way to a JVM raises that is gone has no common parent",
    "app/moving/runs.py": "hands a failed move to the thread that waits for it",
    "app/cli/main.py": "answers of strange servers have any form, and end in one line",
    "app/lines.py": "hands a failure to every thread that waits for it",
    "app/catalog/context/pointer_batches.py": "hands a failed look-up to every request that waits for it",
    "app/fileio/network/punctual_store.py": "hands a failed call to the thread that waits for it",
}


def test_every_error_stands_in_the_tree_of_the_docstring() -> None:
    named = set(re.findall(r"\b[A-Z]\w+\b", TREE))

    assert sorted(set(ERRORS) - named) == []


def test_tree_of_the_docstring_names_no_error_that_is_gone() -> None:
    drawn = re.findall(r"[─,] ([A-Z][A-Za-z]+)", TREE)

    assert [name for name in drawn if name not in ERRORS] == []


def test_tree_of_the_docstring_shows_each_errors_parent() -> None:
    for line in TREE.splitlines():
        level = re.match(r"^((?:│   |    )*)[├└]── (\w+)", line)
        if level:
            depth = len(level[1]) // 4 + 1
            assert len(ERRORS[level[2]].__mro__) - len(IcetowerError.__mro__) == depth, line


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.__name__)
def test_every_leaf_has_a_row_in_the_table_of_answers(leaf: type[IcetowerError]) -> None:
    status, kind = STATUS_AND_TYPE[leaf]

    assert 400 <= status <= 599
    assert kind


def test_errors_that_share_a_parent_share_its_status() -> None:
    strays = [
        f"{child.__name__} is not answered like {parent.__name__}"
        for child in ERRORS.values()
        for parent in child.__bases__
        if parent in STATUS_AND_TYPE and parent is not IcetowerError
        if STATUS_AND_TYPE[child][0] != STATUS_AND_TYPE[parent][0]
    ]

    assert strays == []


def test_errors_know_nothing_of_http() -> None:
    words = set(re.findall(r"[a-z]+", inspect.getsource(app.errors).lower()))

    assert not words & {"status", "httpexception", "response"}


def catches_everything(handler: ast.ExceptHandler) -> bool:
    caught = ast.unparse(handler.type) if handler.type else "everything"
    raises_again = isinstance(handler.body[-1], ast.Raise)
    return (
        bool({"everything", "Exception", "BaseException"} & set(re.findall(r"\w+", caught)))
        and not raises_again
    )


def test_everything_is_caught_only_where_there_is_a_reason_to() -> None:
    places = {
        shown(path)
        for path in python_files("app")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ExceptHandler) and catches_everything(node)
    }

    assert sorted(places - CATCHING_EVERYTHING.keys()) == []

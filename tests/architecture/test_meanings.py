"""One meaning for each name: what `find` and `load` promise, and no two classes of one name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping

import pytest

from tests.architecture.source_files import functions, parsed, python_files, shown

COLLECTIONS = ("list[", "dict[", "set[", "frozenset[", "tuple[", "Iterator[", "Sequence[", "Mapping[")
"""Types whose empty value means that nothing was found."""
FIND_OR = "find_or_"
"""`find_or_create` and its like always return something, as their names say."""
SAME_NAME: Mapping[str, str] = {}
"""Names that two classes of the app may share, and why."""


def breaches(tree: ast.AST) -> Iterator[str]:
    """Yield the functions whose name promises something else than their return type."""
    for function in functions(tree):
        name = function.name.lstrip("_")
        returned = "" if function.returns is None else ast.unparse(function.returns)
        may_be_none = "None" in returned.replace("|", " ").split() or returned.startswith("Optional[")
        finds = name == "find" or (name.startswith("find_") and not name.startswith(FIND_OR))
        if finds and not may_be_none and not returned.startswith(COLLECTIONS):
            yield f"{function.name} never returns None: call it load, or by what it returns"
        if (name == "load" or name.startswith("load_")) and may_be_none:
            yield f"{function.name} may return None: call it find"


def names_of_two(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Return the names that more than one class at the top of a module has, with the modules."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    return {name: found for name, found in places.items() if len(found) > 1}


def test_find_may_return_nothing_and_load_never_does() -> None:
    offences = [
        f"{shown(path)}: {breach}" for path in python_files("app") for breach in breaches(parsed(path))
    ]

    assert offences == []


@pytest.mark.parametrize(
    ("planted", "is_breach"),
    [
        ("def find_table(name: str) -> Table: ...", True),
        ("def _find(name: str): ...", True),
        ("class Tables:\n    async def find(self) -> Table: ...", True),
        ("def load_table(name: str) -> Table | None: ...", True),
        ("def load(name: str) -> Optional[Table]: ...", True),
        ("def find_table(name: str) -> Table | None: ...", False),
        ("def find_tables(names: list[str]) -> dict[str, Table]: ...", False),
        ("def find_or_create(name: str) -> Table: ...", False),
        ("def load_table(name: str) -> Table: ...", False),
    ],
)
def test_planted_name_that_promises_something_else_is_found(planted: str, *, is_breach: bool) -> None:
    assert bool(list(breaches(ast.parse(planted)))) is is_breach


def test_no_two_classes_have_one_name() -> None:
    trees = {shown(path): parsed(path) for path in python_files("app")}

    assert {name: found for name, found in names_of_two(trees).items() if name not in SAME_NAME} == {}


def test_planted_second_class_is_found() -> None:
    tree = ast.parse("class Change: ...\n\ndef f():\n    class Inner: ...\n\nclass Inner: ...")

    assert names_of_two({"a.py": tree, "b.py": ast.parse("class Change: ...")}) == {
        "Change": ["a.py", "b.py"]
    }

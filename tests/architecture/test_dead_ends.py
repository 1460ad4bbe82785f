"""No dead ends: the app itself uses every public name of these rooms; what only tests need is in tests/."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from tests.architecture.source_files import parsed, python_files, shown

ROOMS = ("app.engine.", "app.formats.", "app.catalog.", "app.fileio.", "app.database.")
Name = tuple[str, str]
"""A module, and a name in it."""


def modules() -> dict[str, ast.Module]:
    return {
        shown(path).removesuffix(".py").removesuffix("/__init__").replace("/", "."): parsed(path)
        for path in python_files("app")
    }


def public_names(module: str, tree: ast.Module) -> Iterator[Name]:
    """Yield what a module defines at its top."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names = [name]
            case ast.Assign(targets=targets):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                names = []
        yield from ((module, name) for name in names if not name.startswith("_"))


def used_names(module: str, tree: ast.Module) -> Iterator[Name]:
    """Yield what a module imports, what it takes out of modules, and what of its own it uses elsewhere."""
    imported: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield node.module, alias.name
        elif (
            isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported
        ):
            yield imported[node.value.id], node.attr
    for statement in tree.body:
        own_name = getattr(statement, "name", None)
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id != own_name:
                yield module, node.id


def dead_ends(trees: Mapping[str, ast.Module]) -> list[str]:
    used = {name for module, tree in trees.items() for name in used_names(module, tree)}
    defined = (name for module, tree in trees.items() for name in public_names(module, tree))
    return [
        f"{module}.{name}"
        for module, name in defined
        if module.startswith(ROOMS) and (module, name) not in used
    ]


def test_every_public_name_has_a_caller_in_the_app() -> None:
    assert dead_ends(modules()) == [], "use it, delete it, or move it to tests/builders or tests/strategies"


def test_planted_dead_ends_are_found() -> None:
    planted = {
        "app.engine.planted": ast.parse(
            "LIMIT = 3\n"
            "def used(): return LIMIT\n"
            "def through_module(): ...\n"
            "def calls_itself(): return calls_itself()\n"
            "def dead(): ...\n"
            "class Dead: ...\n"
        ),
        "app.engine.caller": ast.parse(
            "from app.engine import planted\n"
            "from app.engine.planted import used\n"
            "planted.through_module()\n"
            "dead = 1\n"
        ),
        "app.api.routes": ast.parse("def route(): ..."),
    }

    assert dead_ends(planted) == [
        "app.engine.planted.calls_itself",
        "app.engine.planted.dead",
        "app.engine.planted.Dead",
        "app.engine.caller.dead",
    ]

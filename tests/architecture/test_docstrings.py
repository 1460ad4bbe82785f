"""What docstrings must say: what a use case raises, and what a Protocol promises."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import app.errors
from tests.architecture.source_files import functions, parsed, python_files, shown

Function = ast.FunctionDef | ast.AsyncFunctionDef
RAISES = re.compile(r"^Raises:\n((?:[ \t]+.*\n?|\n)+)", re.MULTILINE)


def public_functions(tree: ast.Module) -> Iterator[Function]:
    """Yield the functions of a module and the methods of its classes that others may call."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from (
                method
                for method in node.body
                if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
                and not method.name.startswith("_")
            )


def raised(function: Function) -> set[str]:
    """Return the deliberate errors that stand behind a `raise` in the function itself."""
    names = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Raise) and node.exc is not None:
            target = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            names.add(ast.unparse(target).rpartition(".")[2])
    return {name for name in names if hasattr(app.errors, name)}


def declared(function: Function) -> set[str]:
    """Return the errors that the docstring's `Raises:` section names."""
    section = RAISES.search(ast.get_docstring(function) or "")
    return set(re.findall(r"\b[A-Z]\w+", section[1])) if section else set()


def classes_of_the_app() -> set[str]:
    return {
        node.name
        for path in python_files("app")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
    }


def test_use_cases_declare_every_error_they_raise() -> None:
    undeclared = [
        f"{shown(path)}: {function.name} raises {', '.join(sorted(missing))}"
        for path in python_files("app/catalog")
        for function in public_functions(parsed(path))
        if (missing := raised(function) - declared(function))
    ]

    assert undeclared == []


def test_use_cases_declare_only_errors_that_exist() -> None:
    known = classes_of_the_app()
    unknown = [
        f"{shown(path)}: {function.name} declares {name}"
        for path in python_files("app/catalog")
        for function in public_functions(parsed(path))
        for section in RAISES.findall(ast.get_docstring(function) or "")
        for name in re.findall(r"^\s+([A-Z]\w+)\b.*:", section, re.MULTILINE)
        if name not in known
    ]

    assert unknown == []


def test_every_method_of_a_protocol_says_what_it_promises() -> None:
    silent = [
        f"{shown(path)}: {node.name}.{method.name}"
        for path in python_files("app")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef) and "Protocol" in {ast.unparse(base) for base in node.bases}
        for method in functions(node)
        if not ast.get_docstring(method)
    ]

    assert silent == []


def test_public_functions_say_what_they_do_in_one_sentence() -> None:
    silent = [
        f"{shown(path)}: {function.name}"
        for room in ("engine", "catalog", "formats", "fileio", "database", "client")
        for path in python_files(f"app/{room}")
        for function in parsed(path).body
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        if not function.name.startswith("_")
        if not re.match(r"[^\n]+\.(\n|$)", ast.get_docstring(function) or "")
    ]

    assert silent == []

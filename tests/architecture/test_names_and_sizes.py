"""Names, sizes and opening lines of modules."""

from __future__ import annotations

import ast
import re
from collections import Counter

from tests.architecture.source_files import PYTHON_FOLDERS, ROOT, functions, parsed, python_files, shown

LONGEST_MODULE_LINES = 500
MOST_MODULES_IN_A_FOLDER = 16
BANNED_NAMES = frozenset(
    "util utils helper helpers common misc base core manager managers handler handlers processor processors "
    "service services impl data info models schemas".split()
)
BANNED_WORDS_IN_CLASSES = frozenset("util utils helper manager processor impl".split())
EVERY_FILE = python_files(*PYTHON_FOLDERS)
WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def words(name: str) -> set[str]:
    return {word.lower() for word in WORDS.findall(name)}


def test_modules_and_folders_are_named_for_what_they_hold() -> None:
    vague = [shown(path) for path in EVERY_FILE if {path.stem, path.parent.name} & BANNED_NAMES]

    assert vague == []


def test_classes_are_named_for_what_they_are() -> None:
    vague = [
        f"{shown(path)}: {node.name}"
        for path in python_files("app")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef) and words(node.name) & BANNED_WORDS_IN_CLASSES
    ]

    assert vague == []


def test_no_function_says_get() -> None:
    vague = [
        f"{shown(path)}: {function.name}"
        for path in python_files("app")
        for function in functions(parsed(path))
        if function.name.startswith("get_")
        # A route is named for its operation in openapi.yaml, and one of those is getConfig.
        if not shown(path).startswith("app/api/routes/")
    ]

    assert vague == [], "find may return nothing, load raises, read touches files: say which"


def test_modules_are_short_enough_to_read() -> None:
    lengths = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in EVERY_FILE}

    assert {path: lines for path, lines in lengths.items() if lines > LONGEST_MODULE_LINES} == {}


def test_folders_hold_few_enough_modules_to_know_them_all() -> None:
    modules = Counter(shown(path.parent) for path in python_files("app") if path.name != "__init__.py")

    assert {folder: count for folder, count in modules.items() if count > MOST_MODULES_IN_A_FOLDER} == {}


def test_modules_open_with_one_line_that_says_what_is_in_them() -> None:
    silent = [
        shown(path)
        for path in EVERY_FILE
        # A unit test is named for the module it tests, which says the rest.
        if not shown(path).startswith("tests/unit/")
        if not (ast.get_docstring(parsed(path)) or "").partition("\n")[0].rstrip().endswith(".")
    ]

    assert silent == [], "the docstring's first line is a sentence with a full stop"


def test_imports_stand_at_the_top() -> None:
    # What pyproject.toml permits with its reason.
    late = {
        "app/cli/server/commands.py",
        "app/cli/server/processes.py",
        "app/api/description.py",
        "app/cli/main.py",
        "app/cli/start.py",
        "app/cli/terminal/output.py",
        "app/cli/moving/sources.py",
        "app/main.py",
        "app/catalog/deletions/orphan_search.py",
        "app/database/connections/dialects.py",
        "app/database/statements/inserts.py",
        "app/fileio/network/adls.py",
        "app/fileio/schemes.py",
        "app/formats/avro/container.py",
        "app/formats/parquet/footers.py",
        "app/formats/parquet/nested_layouts.py",
        "app/formats/parquet/partition_statistics.py",
        "app/formats/manifests/columns.py",
        "app/maintenance/spark/spark_sessions.py",
    }
    hidden = [
        f"{shown(path)}:{node.lineno}"
        for path in EVERY_FILE
        if shown(path) not in late
        for function in functions(parsed(path))
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]

    assert hidden == []


def test_the_way_of_a_commit_is_one_short_file() -> None:
    door = ROOT / "app" / "catalog" / "commits" / "door.py"

    assert len(door.read_text(encoding="utf-8").splitlines()) <= 120, (
        "find, read, require, apply, guard, stage, put"
    )

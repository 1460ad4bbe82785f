"""Only one table knows what the format versions differ in: no other code compares a version with a number."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.source_files import parsed, python_files, shown

NAMES = frozenset({"format_version", "format-version", "version"})


def bare_comparisons(tree: ast.AST) -> Iterator[int]:
    """Yield the lines where a format version is compared with a number."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            if any(map(is_version, operands)) and any(map(has_number, operands)):
                yield node.lineno
        elif isinstance(node, ast.Match) and is_version(node.subject):
            yield from (case.pattern.lineno for case in node.cases if has_number(case.pattern))


def is_version(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=name)):
            return name in NAMES
    return False


def has_number(node: ast.AST) -> bool:
    return any(isinstance(item, ast.Constant) and isinstance(item.value, int) for item in ast.walk(node))


def test_no_format_version_is_compared_with_a_number() -> None:
    bare = [
        f"{shown(path)}:{line}" for path in python_files("app") for line in bare_comparisons(parsed(path))
    ]

    assert bare == [], "ask app/engine/model/format_versions.py what a version has"


@pytest.mark.parametrize(
    "planted",
    [
        "draft.format_version > 1",
        "1 < format_version <= MAX",
        "base.format_version in (1, 2)",
        "version == 3",
        "document['format-version'] >= 3",
        "match format_version:\n    case 1 | 2: pass",
    ],
)
def test_planted_comparison_is_found(planted: str) -> None:
    assert list(bare_comparisons(ast.parse(planted)))


@pytest.mark.parametrize(
    "allowed",
    ["draft.format.has_row_lineage", "version < draft.format_version", "current_version_id == 1"],
)
def test_other_questions_are_allowed(allowed: str) -> None:
    assert not list(bare_comparisons(ast.parse(allowed)))

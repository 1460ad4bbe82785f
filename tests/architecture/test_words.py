"""The words of the app: short first sentences, and none of the words that hide who does what."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.source_files import parsed, python_files, shown

MAX_FIRST_SENTENCE = 90
BANNED = re.compile(r"\b(told|tells|whoever|nobody|minded|is none of)\b", re.IGNORECASE)
ALLOWED = {
    "app/engine/model/data_types/types.py": ("is none of struct, list, map", "tests know the message"),
    "app/engine/change/edits/snapshots.py": ("is none of", "clients and tests know the message"),
}
"""Texts with a banned word that stay, by file, and why."""


def first_sentences(tree: ast.Module) -> Iterator[str]:
    """Yield the first sentence of each docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            summary = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
            yield re.split(r"(?<=\.)\s", summary)[0]


def too_long(tree: ast.Module) -> list[str]:
    return [sentence for sentence in first_sentences(tree) if len(sentence) >= MAX_FIRST_SENTENCE]


def banned_lines(path: str, text: str) -> list[str]:
    allowed, _reason = ALLOWED.get(path, ("", ""))
    return [
        line.strip()
        for line in text.splitlines()
        if BANNED.search(line) and not (allowed and allowed in line)
    ]


def test_first_sentence_of_every_docstring_is_short() -> None:
    offences = [
        f"{shown(path)}: {sentence}" for path in python_files("app") for sentence in too_long(parsed(path))
    ]

    assert offences == []


def test_planted_long_sentence_is_found() -> None:
    sentence = f"Return {'very ' * 20}much."

    assert too_long(ast.parse(f'def f():\n    """{sentence}\n\n    More.\n    """')) == [sentence]
    assert too_long(ast.parse(f'def f():\n    """Short. {sentence}"""')) == []


def test_no_text_has_a_word_that_hides_who_does_what() -> None:
    offences = [
        f"{shown(path)}: {line}"
        for path in python_files("app")
        for line in banned_lines(shown(path), path.read_text(encoding="utf-8"))
    ]

    assert offences == [], "say who does it: the server reports, the caller asks, no client reads"


@pytest.mark.parametrize("word", ["told", "Tells", "whoever", "Nobody", "minded", "is none of"])
def test_planted_word_is_found(word: str) -> None:
    assert banned_lines("app/main.py", f"# {word} it") == [f"# {word} it"]
    assert banned_lines("app/engine/model/data_types/types.py", f"# {word} it") == [f"# {word} it"]


def test_allowed_texts_are_still_there() -> None:
    texts = {shown(path): path.read_text(encoding="utf-8") for path in python_files("app")}

    assert [path for path, (text, _reason) in ALLOWED.items() if text not in texts[path]] == []

"""The pages people read: the drawn trees, the table of settings, and every link."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from pydantic import Secret

from app.dotenv_file import PREFIX
from app.settings import Settings
from tests.architecture.source_files import ROOT, repository_files, shown

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
MAKE_COMMAND = re.compile(r"\bmake ([a-z]+)\b")


@pytest.mark.parametrize("script", ["architecture-tree", "properties-page"])
def test_pages_that_a_script_writes_show_what_is_there(script: str) -> None:
    verdict = subprocess.run(
        [sys.executable, f"scripts/{script}", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert verdict.returncode == 0, verdict.stdout + verdict.stderr


def documented_settings() -> dict[str, tuple[str, str]]:
    """Return what the table of settings shows, default and meaning, by name."""
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `?([^`|]*?)`? \| (.*) \|$", page, re.MULTILINE)
    return {name: (default, meaning.replace("&lt;", "<")) for name, default, meaning in rows}


def shown_default(default: object) -> str:
    value = default.get_secret_value() if isinstance(default, Secret) else default
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple) and value:
        return ", ".join(value)
    return "none" if value in ((), {}, None) else str(value)


def test_the_table_of_settings_is_that_of_the_code() -> None:
    settings = {
        name: (shown_default(field.default), field.description)
        for name, field in Settings.model_fields.items()
    }

    assert documented_settings() == settings


def test_the_table_of_settings_is_nowhere_else() -> None:
    tables = [
        shown(page)
        for page in repository_files()
        if page.suffix == ".md"
        and re.search(rf"^\| `{PREFIX}", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]

    assert tables == []


def test_every_relative_link_leads_somewhere() -> None:
    broken = [
        f"{shown(page)}: {target}"
        for page in repository_files()
        if page.suffix == ".md"
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if "://" not in target and not target.startswith("mailto:")
        if not (page.parent / target).exists()
    ]

    assert broken == []


def test_pages_name_only_tests_that_exist() -> None:
    named = {
        (shown(page), path, test)
        for page in repository_files()
        if page.suffix == ".md"
        for path, test in NAMED_TEST.findall(page.read_text(encoding="utf-8"))
    }

    missing = {
        (page, path, test)
        for page, path, test in named
        if not (ROOT / path).is_file() or f"def {test}(" not in (ROOT / path).read_text(encoding="utf-8")
    }

    assert (named != set(), missing) == (True, set())


def test_pages_name_only_make_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    pages = [page for page in repository_files() if page.suffix == ".md"]

    commands = {
        (shown(page), target)
        for page in pages
        for code in re.findall(r"`[^`]+`|```.*?```", page.read_text(encoding="utf-8"), re.DOTALL)
        for target in MAKE_COMMAND.findall(code)
    }

    assert {(page, target) for page, target in commands if target not in targets} == set()

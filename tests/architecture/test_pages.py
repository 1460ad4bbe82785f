"""The pages people read: the drawn trees, the table of settings, and every link."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import pytest
import typer
from pydantic import Secret

from app.cli.main import command_line
from app.dotenv_file import PREFIX
from app.settings import Settings
from tests.architecture.source_files import ROOT, repository_files, shown

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
MAKE_COMMAND = re.compile(r"\bmake ([a-z]+)\b")
SHELL = re.compile(r"^```(?:sh|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
IN_HELP = re.compile(r"`((?:[A-Z_]+=\S+ )?icetower [a-z][^`]*)`")
OUR_COMMAND = re.compile(r"(?:^|\s|bin/)icetower ([a-z].*)")
ENDS_COMMAND = frozenset({"|", "||", "&&", ">", ">>", "<"})


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


def test_the_table_of_benchmarks_names_all_of_them() -> None:
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    runner = (ROOT / "benchmarks" / "__main__.py").read_text(encoding="utf-8")

    named = set(re.findall(r"^\| (\w+) \| ", page, re.MULTILINE)) - {"name"}

    assert named == set(re.findall(r'^ {12}"(\w+)": \(', runner, re.MULTILINE))


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


def commands_below(command: Any) -> Iterator[Any]:
    yield command
    for below in getattr(command, "commands", {}).values():
        yield from commands_below(below)


def unknown_in(line: str, whole: Any) -> str | None:
    """Return what a line of a shell says that `icetower` does not know: a command, or an option of one."""
    found = OUR_COMMAND.search(line)
    if found is None:
        return None
    words = list(takewhile(lambda word: word not in ENDS_COMMAND, shlex.split(found[1], comments=True)))
    command = whole
    while hasattr(command, "commands"):
        name = words.pop(0) if words else ""
        if name not in command.commands:
            return f"{line.strip()}: {name}"
        command = command.commands[name]
    known = {name for option in command.params for name in option.opts}
    used = {word.partition("=")[0] for word in words if word.startswith("-") and word != "-"}
    unknown = used - known
    return f"{line.strip()}: {sorted(unknown)}" if unknown else None


def test_pages_and_help_show_only_commands_and_options_that_exist() -> None:
    whole = typer.main.get_command(command_line())
    pages = [page.read_text(encoding="utf-8") for page in repository_files() if page.suffix == ".md"]
    blocks = [block for page in pages for block in SHELL.findall(page)]
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    lines += [
        " ".join(line.split()) for each in commands_below(whole) for line in IN_HELP.findall(each.help or "")
    ]

    assert len([line for line in lines if OUR_COMMAND.search(line)]) > 100
    assert [unknown for line in lines if (unknown := unknown_in(line, whole)) is not None] == []


@pytest.mark.parametrize(
    ("line", "is_known"),
    [
        ("icetower table list eu --json | jq -r '.[]'", True),
        (".venv/bin/icetower serve  # --nothing", True),
        ("icetower tabel list eu", False),
        ("icetower table list eu --jsn", False),
    ],
)
def test_a_command_that_does_not_exist_is_seen(line: str, is_known: bool) -> None:
    assert (unknown_in(line, typer.main.get_command(command_line())) is None) is is_known

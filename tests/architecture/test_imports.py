"""Who may import whom: the import-linter contracts of pyproject.toml."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.source_files import ROOT, parsed, python_files, shown

NOT_DECLARED = {
    "starlette": "what FastAPI is made of; its version is FastAPI's to choose",
    "pydantic_core": "what Pydantic is made of; its version is Pydantic's to choose",
    "pyspark": "the extra icetower[spark] has it; only jobs that move data need it",
    "pytest": "the environment that uses the pytest plugin has it",
}
MOCKING = {"unittest.mock", "mock"}
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT_IMPORTS, "--no-logo", "--no-cache"], cwd=folder, capture_output=True, text=True, check=False
    )


def test_every_import_contract_is_kept() -> None:
    verdict = lint_imports(ROOT)

    assert verdict.returncode == 0, verdict.stdout + verdict.stderr


@pytest.mark.parametrize(
    ("module", "planted", "contract"),
    [
        ("app/engine/model/ids.py", "import sqlalchemy", "SQLAlchemy, Alembic and psycopg stay in database"),
        ("app/engine/model/ids.py", "import time", "The engine does no I/O"),
        (
            "app/engine/model/ids.py",
            "import app.engine.change.apply",
            "Inside the engine, verbs build on nouns",
        ),
        ("app/fileio/files.py", "import app.catalog", "Rooms import downwards only"),
        (
            "app/api/responses/etags.py",
            "import app.database.schema.rows",
            "Only the catalog reads or moves pointers",
        ),
        ("app/formats/__init__.py", "import httpx", "httpx stays in client and in the calls of HDFS"),
        ("app/catalog/__init__.py", "import azure", "Azure's library stays in two modules of fileio"),
        ("app/catalog/__init__.py", "import fastavro", "fastavro stays in one module of formats"),
        (
            "app/formats/manifests/columns.py",
            "from app.formats.avro.types import read_long",
            "Avro is used by its face only",
        ),
        (
            "app/formats/avro/types.py",
            "import app.formats.manifests.lists",
            "Inside formats, files of the spec build on Avro and caches",
        ),
        (
            "app/catalog/commits/door.py",
            "import app.catalog.refs",
            "Inside the catalog, use cases build on commits",
        ),
        (
            "app/database/pointers/moves.py",
            "import app.database.deletions.file_deletions",
            "Inside the database, stores build on pointers and connections",
        ),
        (
            "app/cli/terminal/output.py",
            "import app.cli.tables.refs",
            "Inside the command line, commands build on the terminal",
        ),
        (
            "app/cli/tables/refs.py",
            "import app.settings",
            "Commands that call a server import no part of one",
        ),
        ("app/catalog/__init__.py", "import fastapi", "FastAPI and Starlette stay in api and main"),
    ],
)
def test_planted_import_breaks_its_contract(tmp_path: Path, module: str, planted: str, contract: str) -> None:
    for source in [*python_files("app"), ROOT / "pyproject.toml"]:
        copy = tmp_path / source.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    victim = tmp_path / module
    victim.write_text(f"{victim.read_text(encoding='utf-8')}\n{planted}\n", encoding="utf-8")

    verdict = lint_imports(tmp_path)

    assert verdict.returncode != 0
    assert f"{contract} BROKEN" in verdict.stdout


def test_every_library_that_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {canonicalize_name(Requirement(line).name) for line in project["dependencies"]}
    distributions = packages_distributions()

    undeclared = {
        f"{shown(path)}: {library}"
        for path in [*python_files("app"), *python_files("migrations")]
        for library in libraries_in(path) - NOT_DECLARED.keys()
        if not {canonicalize_name(name) for name in distributions.get(library, [library])} & declared
    }

    assert undeclared == set()


def libraries_in(path: Path) -> set[str]:
    """Return the top-level names a file imports that are neither Python's nor ours."""
    names = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names - sys.stdlib_module_names - {"app", "migrations"}


def test_no_test_imports_a_mocking_library() -> None:
    offences = [
        f"{shown(path)}:{node.lineno}"
        for path in python_files("tests")
        for node in ast.walk(parsed(path))
        if (isinstance(node, ast.ImportFrom) and node.module in MOCKING)
        or (isinstance(node, ast.Import) and {alias.name for alias in node.names} & MOCKING)
    ]

    assert offences == [], "pass a fake in instead; fakes live in tests/ and pass the contract suite"


def test_no_test_sleeps_but_to_ask_again() -> None:
    asking_again = {
        call
        for path in python_files("tests")
        for loop in ast.walk(parsed(path))
        if isinstance(loop, ast.While | ast.For)
        for call in ast.walk(loop)
    }
    offences = [
        f"{shown(path)}:{node.lineno}"
        for path in python_files("tests")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and node not in asking_again
        if ast.unparse(node.func) in {"time.sleep", "sleep", "asyncio.sleep"}
    ]

    assert offences == [], (
        "wait for the event itself; only a loop with a deadline may sleep between two looks"
    )

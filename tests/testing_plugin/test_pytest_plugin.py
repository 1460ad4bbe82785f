"""The fixtures, in the pytest run of another project, and what loading the plugin costs that project."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = (
    "fastapi",
    "uvicorn",
    "sqlalchemy",
    "alembic",
    "pydantic",
    "pyarrow",
    "httpx",
    "app.main",
    "app.settings",
)

PROJECT = """
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

ORDERS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def catalog(icetower_url):
    return load_catalog("test", type="rest", uri=icetower_url)


@pytest.mark.parametrize("times", [1, 2])
def test_each_test_has_an_empty_catalog(catalog, times):
    assert catalog.list_namespaces() == []
    catalog.create_namespace("sales")
    table = catalog.create_table("sales.orders", schema=ORDERS.schema)

    for _ in range(times):
        table.append(ORDERS)

    assert table.scan().to_arrow().num_rows == 3 * times


@pytest.mark.parametrize("turn", [1, 2])
def test_the_tests_of_a_session_share_one(icetower_session_url, turn):
    catalog = load_catalog("test", type="rest", uri=icetower_session_url)
    catalog.create_namespace(f"turn{turn}")

    assert len(catalog.list_namespaces()) == turn


def test_both_may_be_asked_for(icetower_url, icetower_session_url):
    assert icetower_url != icetower_session_url
"""


def outside(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    inherited = {
        name: text for name, text in os.environ.items() if not name.startswith(("ICETOWER_", "PYTEST_"))
    }
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=inherited | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_another_project_tests_against_a_catalog(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(PROJECT)

    # By module and not by entry point, so that it is this source tree's plugin in any environment.
    run = outside(tmp_path, "-m", "pytest", "-p", "no:icetower", "-p", "icetower_pytest", "-q")

    assert run.returncode == 0, run.stdout + run.stderr
    assert "5 passed" in run.stdout


def test_loading_the_plugin_imports_nothing_of_the_server(tmp_path: Path) -> None:
    script = f"import sys, icetower_pytest; print([m for m in {HEAVY!r} if m in sys.modules])"

    run = outside(tmp_path, "-c", script)

    assert run.stdout.strip() == "[]", run.stderr


def test_what_the_package_does_not_have_is_an_attribute_error(tmp_path: Path) -> None:
    run = outside(tmp_path, "-c", "import app.testing; app.testing.nonsense")

    assert "AttributeError: module 'app.testing' has no attribute 'nonsense'" in run.stderr


def test_the_package_declares_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert project["entry-points"]["pytest11"] == {"icetower": "icetower_pytest"}


def test_type_checkers_of_other_projects_are_told_of_our_types() -> None:
    assert (ROOT / "app" / "py.typed").is_file()

"""`icetower demo`: handing over, or saying what is missing."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from rich.console import Console

from app.cli.server import demo
from examples.flights import server
from examples.flights.narration import Narrator
from examples.flights.pipeline import Pipeline
from tests.unit.cli.conftest import Icetower

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def any_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no two demos want the same port at the same moment."""
    monkeypatch.setattr(server, "USUAL_PORT", 0)


@pytest.mark.slow
def test_the_demo_is_handed_its_own_arguments(bare: Icetower) -> None:
    explained = bare("demo", "--help")

    assert explained.status == 0
    assert "python -m examples.flights" in explained.out


def test_an_installation_without_the_demo_says_where_it_is(
    bare: Icetower, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "ROOT", folder)

    refused = bare("demo")

    assert (refused.status, refused.out) == (1, "")
    assert "not part of this installation" in refused.err


def test_an_environment_without_its_packages_is_told_which(
    bare: Icetower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "NEEDED", ("json", "no_such_package"))

    refused = bare("demo")

    assert refused.status == 1
    assert refused.err.startswith("Error: The demo needs no_such_package")


def test_a_folder_of_another_server_is_not_emptied(tmp_path: Path) -> None:
    """The settings of any server are called as those of the demo's."""
    database = tmp_path / ".icetower" / "icetower.db"
    database.parent.mkdir()
    database.touch()
    (tmp_path / server.SETTINGS_FILE).write_text("port = 9000\n")

    with pytest.raises(server.ServerNotReady, match="is not a demo's folder"):
        server.clear(tmp_path)

    assert database.exists()


@pytest.mark.usefixtures("any_port")
def test_a_folder_of_an_earlier_demo_is_emptied(tmp_path: Path) -> None:
    with server.icetower(tmp_path):
        assert (tmp_path / "icetower.db").exists()

    server.clear(tmp_path)

    assert [*tmp_path.iterdir()] == []


@pytest.mark.usefixtures("any_port")
def test_settings_of_the_callers_folder_are_not_those_of_the_demo(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables would be made in a catalog that is in use."""
    own = tmp_path_factory.mktemp("demo")
    theirs = folder / "theirs.db"
    (folder / ".env").write_text(f"ICETOWER_DATABASE_URL=sqlite:///{theirs}\nICETOWER_WAREHOUSE=elsewhere\n")
    monkeypatch.setenv("ICETOWER_WAREHOUSE", "elsewhere")
    said = io.StringIO()
    with server.icetower(own) as running:
        narrator = Narrator(Console(file=said), 1)
        pipeline = Pipeline(cast("SparkSession", None), narrator, own, running.uri)
        pipeline.icetower("warehouse", "list")
        pipeline.icetower("namespace", "list")

    assert not theirs.exists()
    assert (own / "icetower.db").exists()
    assert "No namespaces yet." in said.getvalue()

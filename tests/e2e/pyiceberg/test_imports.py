"""Tables of other catalogs move in: PyIceberg reads every row of them, and goes on writing here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog

from app.client.catalog import RemoteCatalog
from app.moving.mover import Mover
from app.moving.reports import MoveLine, MoveReport, MoveState
from app.moving.runs import chosen_entries, run_moves
from app.moving.sources import Source
from app.moving.sql_source import SqlSource
from app.moving.targets import MoveTarget
from app.moving.terms import Mode, Terms
from tests.servers.icetower import icetower_process

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "region": ["eu", "us", "eu"]})
MORE = pa.table({"id": pa.array([4], pa.int64()), "region": ["eu"]})


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which all catalogs of these tests keep their tables."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def new_home(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("new-home")
    with icetower_process(folder, default_warehouse_location=str(lake)) as uri:
        yield uri


@pytest.fixture(scope="session")
def old_home(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("old-home")
    with icetower_process(folder, default_warehouse_location=str(lake / "old")) as uri:
        yield uri


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def sql_catalog(request: pytest.FixtureRequest, lake: Path, tmp_path: Path) -> SqlCatalog:
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    if request.param == "postgres":
        plain: str = request.getfixturevalue("postgres_url")
        url = plain.replace("postgresql://", "postgresql+psycopg://", 1)
    return SqlCatalog("prod", uri=url, warehouse=f"file://{lake}/{tmp_path.name}")


def moved(source: Source, uri: str, terms: Terms, report: Path) -> dict[str, MoveLine]:
    """Move what is chosen, and answer what became of each by its name."""
    lines: dict[str, MoveLine] = {}
    with RemoteCatalog(uri) as target:
        noted = MoveReport(report, source.name, uri)
        mover = Mover(source, MoveTarget(target), terms, noted)
        entries = chosen_entries(source, terms, noted)
        run_moves(
            source,
            target,
            mover,
            terms,
            entries,
            workers=4,
            listener=lambda line: lines.update({str(line.entry.identifier): line}),
        )
    return lines


def test_tables_of_a_sql_catalog_are_adopted_with_all_rows_and_written_on(
    sql_catalog: SqlCatalog, new_home: str, tmp_path: Path
) -> None:
    namespace = tmp_path.name
    sql_catalog.create_namespace(f"{namespace}.inner", {"owner": "anna"})
    table = sql_catalog.create_table(f"{namespace}.inner.orders", ROWS.schema, properties={"team": "lake"})
    table.append(ROWS)
    table.append(MORE)
    before = table.metadata

    source = SqlSource(str(sql_catalog.engine.url.render_as_string(hide_password=False)))
    lines = moved(source, new_home, Terms(Mode.ADOPT), tmp_path / "report.ndjson")

    assert {line.state for line in lines.values()} == {MoveState.DONE}
    assert not sql_catalog.table_exists(f"{namespace}.inner.orders")
    here = RestCatalog("new", uri=new_home)
    found = here.load_table(f"{namespace}.inner.orders")
    assert found.metadata == before
    assert here.load_namespace_properties(f"{namespace}.inner")["owner"] == "anna"
    found.append(MORE)
    assert sorted(found.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 4]
    assert moved(source, new_home, Terms(Mode.ADOPT), tmp_path / "report.ndjson") == {}

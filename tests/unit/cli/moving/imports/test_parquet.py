"""`icetower import parquet` against a real server, and without one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from tests.unit.cli.conftest import SCHEMA, Icetower


@pytest.fixture
def root(catalog: RemoteCatalog, namespace: str) -> Path:
    """A folder in the warehouse with one file, below a folder of a day."""
    orders = catalog.tables.create(TableIdentifier(Namespace((namespace,)), "orders"), SCHEMA)
    found = Path(str(orders.metadata["location"]).removeprefix("file://")) / "raw"
    (found / "day=2025-10-09").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), found / "day=2025-10-09" / "a.parquet")
    return found


def test_files_become_a_table(icetower: Icetower, root: Path, namespace: str) -> None:
    shown = icetower("import", "parquet", str(root), f"{namespace}.raw", "--dry-run").out
    assert [line.split() for line in shown.splitlines()[2:]] == [
        ["id", "long", "no"],
        ["day", "date", "yes"],
        f"1 file would become table {namespace}.raw.".split(),
    ]
    done = icetower("import", "parquet", str(root), f"{namespace}.raw")
    assert (done.status, done.out) == (0, f"Appended 1 file of 1 to table {namespace}.raw.\n")
    listed = root.parent / "files.txt"
    listed.write_text(f"{root}/day=2025-10-09/a.parquet\n")
    again = icetower("import", "parquet", f"@{listed}", f"{namespace}.raw", "--json")
    counts = {"appended": 0, "let-go": 0, "unsure": 0}
    assert again.json == {"table": f"{namespace}.raw", "files": 1, **counts}


def test_a_dry_run_on_a_table_that_is_there_shows_what_is_new(
    icetower: Icetower, root: Path, namespace: str
) -> None:
    dry_run = ("import", "parquet", str(root), f"{namespace}.raw", "--dry-run")
    icetower(*dry_run[:-1])
    nothing = icetower(*dry_run, "--json").json
    pq.write_table(pa.table({"id": [3]}), root / "day=2025-10-09" / "b.parquet")

    shown = icetower(*dry_run).out
    found = icetower(*dry_run, "--json").json

    assert shown.endswith(f"1 file of 2 would be appended to table {namespace}.raw, which is there.\n")
    assert (found["files"], found["is-there"], found["partitions"]) == (1, True, ["day"])
    assert nothing == {"files": 0, "is-there": True, "let-go": 0, "unsure": 0}


def test_files_are_looked_at_without_a_server(bare: Icetower, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")

    dry_run = ("import", "parquet", str(tmp_path), "a.b", "--dry-run", "--uri", "http://127.0.0.1:1")
    shown, as_json = bare(*dry_run), bare(*dry_run, "--json").json

    assert (as_json["files"], as_json["is-there"]) == (1, None)
    assert (shown.status, shown.out.splitlines()[-1]) == (0, "1 file would become table a.b.")
    assert "Whether table a.b is there is not known" in shown.err


@pytest.mark.parametrize("kind", ["folder", "parquet", "list"])
def test_storage_settings_that_make_no_sense_are_wrong_usage(
    bare: Icetower, tmp_path: Path, kind: str
) -> None:
    listed = tmp_path / "files.txt"
    listed.write_text("s3://lake/raw/a.parquet\n")
    what = ("folder", "s3://lake") if kind == "folder" else ("parquet", "s3://lake/raw", "a.b")
    if kind == "list":
        what = ("parquet", f"@{listed}", "a.b")

    refused = bare("import", *what, "--storage", "s3.path-style-access=maybe", "--dry-run")

    assert (refused.status, refused.out) == (2, "")
    assert refused.err == "Error: Storage setting s3.path-style-access must be true or false\n"

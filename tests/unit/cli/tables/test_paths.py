"""`icetower table rewrite-paths` as far as it comes without Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from app.cli.tables import paths
from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location
from app.maintenance.path_rewrite import RewrittenPaths
from app.maintenance.spark.spark_failures import SparkFailure, failure_of
from app.maintenance.staged_copies import StagedCopy
from tests.unit.cli.conftest import Icetower


@pytest.fixture
def name(catalog: RemoteCatalog, namespace: str) -> str:
    schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
    catalog.tables.create(TableIdentifier(Namespace((namespace,)), "moving"), schema)
    return f"{namespace}.moving"


def found(flaws: Sequence[str] = ()) -> RewrittenPaths:
    return RewrittenPaths(
        Location("s3://new/m.json"), StagedCopy(Location("s3://old/list"), 7, 2, tuple(flaws)), "1.10.2"
    )


def test_spark_that_is_not_there_is_said(icetower: Icetower, name: str) -> None:
    ran = icetower("table", "rewrite-paths", name, "--to", "s3://new/t", "--spark", "sc://127.0.0.1:1")

    assert ran.status == 1
    assert "Spark Connect" in ran.err


def test_same_place_is_refused(icetower: Icetower, name: str) -> None:
    ran = icetower(
        "table", "rewrite-paths", name, "--from", "s3://b/t", "--to", "s3://b/t/", "--spark", "local"
    )

    assert ran.status == 1
    assert "nothing would be rewritten" in ran.err


@pytest.mark.parametrize(
    ("answer", "status", "says"),
    [
        (found(), 0, "s3://old/list"),
        (found(["location is odd"]), 1, "DO NOT USE IT"),
        (failure_of(RuntimeError("java.lang.IllegalArgumentException: odd")), 1, "Spark could not do it"),
    ],
)
def test_what_was_found_is_shown(
    icetower: Icetower,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    answer: RewrittenPaths | SparkFailure,
    status: int,
    says: str,
) -> None:
    monkeypatch.setattr(paths, "rewrite_paths", lambda *_given, **_more: answer)

    ran = icetower("table", "rewrite-paths", name, "--to", "s3://new/t", "--spark", "local")

    assert ran.status == status
    assert says in ran.out + ran.err


def test_programs_are_answered_json(icetower: Icetower, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "rewrite_paths", lambda *_given, **_more: found())

    ran = icetower("table", "rewrite-paths", name, "--to", "s3://new/t", "--spark", "local", "--json")

    assert ran.json == {
        "file-list": "s3://old/list",
        "files": 7,
        "metadata-location": "s3://new/m.json",
        "mended-manifest-lists": 2,
        "iceberg-version": "1.10.2",
        "flaws": [],
    }

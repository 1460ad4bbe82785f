from __future__ import annotations

from collections.abc import Callable

import pytest

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.maintenance.path_rewrite import check_version, plan, rewrite_paths
from app.maintenance.spark.procedures import JobRefused
from app.maintenance.spark.spark_failures import SparkFailure
from app.maintenance.staged_copies import PathChange
from tests.unit.maintenance.test_spark_jobs import ScriptedSpark

CHANGE = PathChange("s3://old/t", "s3://new/t")


def test_call_names_both_prefixes() -> None:
    assert plan(CHANGE, None, {}).arguments == {"source_prefix": "s3://old/t", "target_prefix": "s3://new/t"}
    assert plan(CHANGE, Location("s3://old/x"), {}).arguments["staging_location"] == "s3://old/x"


@pytest.mark.parametrize(
    ("change", "properties", "why"),
    [
        (PathChange("s3://b/t", "s3://b/t"), {}, "nothing would be rewritten"),
        (PathChange("s3://old/t", "new/t"), {}, "new/t cannot be a prefix of locations: Not a location"),
        (PathChange("old", "s3://new/t"), {}, "old cannot be a prefix of locations: Not a location"),
        (CHANGE, {"encryption.key-id": "k"}, "encrypted"),
    ],
)
def test_what_cannot_be_done_is_refused(change: PathChange, properties: dict[str, str], why: str) -> None:
    with pytest.raises(JobRefused, match=why):
        plan(change, None, properties)


@pytest.mark.parametrize("version", ["1.10.2", "1.9.0", "1.11.0-SNAPSHOT"])
def test_old_iceberg_is_refused_where_there_are_delete_files(version: str) -> None:
    check_version(version, 0)
    with pytest.raises(JobRefused, match=r"use 1\.12"):
        check_version(version, 1)


@pytest.mark.parametrize("version", ["1.12.0", "1.13.0-rc1", "2.0.0", "odd"])
def test_newer_iceberg_is_not_refused(version: str) -> None:
    check_version(version, 1)


def test_spark_that_fails_has_changed_nothing(
    server_url: str, catalog: RemoteCatalog, make_table: Callable[..., TableIdentifier]
) -> None:
    session = ScriptedSpark(RuntimeError("no"))

    failure = rewrite_paths(
        catalog, lambda: session, make_table("moving"), CHANGE, spark_catalog={"uri": server_url}
    )

    assert isinstance(failure, SparkFailure)
    (statement,) = session.statements
    assert "iceberg_version()" in statement

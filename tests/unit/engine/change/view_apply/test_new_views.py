"""The first metadata of a view."""

from __future__ import annotations

import pytest

from app.engine.change.view_apply import new_view_metadata
from app.engine.model.ids import Location, TableUuid
from app.engine.model.view_metadata import ViewMetadata, ViewVersion, read_view_metadata
from app.errors import InvalidUpdate, InvalidViewVersion
from tests.unit.engine.documents import NOW_MS, UUID, Json, column, encoded, schema, view_version_json


def created(version: Json, **properties: str) -> ViewMetadata:
    metadata = new_view_metadata(
        schema=schema(column(1, "id"), schema_id=8),
        version=ViewVersion.from_json(encoded(version)),
        location=Location("s3://bucket/v/"),
        properties=properties,
        uuid=TableUuid(UUID),
        now_ms=NOW_MS,
    )
    assert read_view_metadata(metadata.to_json()) == metadata
    return metadata


def test_new_view_numbers_its_schema_and_keeps_the_version_id() -> None:
    metadata = created(view_version_json(1, schema_id=8), owner="me")

    assert metadata.uuid == UUID
    assert metadata.format_version == 1
    assert metadata.location == "s3://bucket/v/"
    assert [item.schema_id for item in metadata.schemas] == [0]
    assert metadata.current_version.to_object() == view_version_json(1, schema_id=0)
    assert [(item.version_id, item.timestamp_ms) for item in metadata.version_log] == [(1, NOW_MS + 1000)]
    assert metadata.properties == {"owner": "me"}


@pytest.mark.parametrize(("sent", "kept"), [(1, 1), (7, 7), (0, 1), (-3, 1), (2**30, 2**30)])
def test_version_id_of_a_new_view_is_kept_if_it_is_one(sent: int, kept: int) -> None:
    assert created(view_version_json(sent) | {"timestamp-ms": NOW_MS}).current_version_id == kept


def test_columns_of_a_view_keep_their_ids() -> None:
    assert created(view_version_json(1)).schemas[0].fields[0].id == 1


def test_unknown_fields_of_a_new_view_are_stored() -> None:
    version = view_version_json(1) | {"vendor": {"a": None}}
    version["representations"][0]["vendor"] = 1

    assert created(version).current_version.to_object() == version


@pytest.mark.parametrize(
    ("version", "error", "message"),
    [
        (
            view_version_json(1, "trino", "spark", "Trino"),
            InvalidViewVersion,
            "Invalid view version: Cannot add multiple queries for dialect trino",
        ),
        (
            view_version_json(1) | {"representations": []},
            InvalidUpdate,
            "Invalid view version: it has no representations",
        ),
        (
            view_version_json(1) | {"representations": [{"type": "SQL", "sql": "select 1"}]},
            InvalidUpdate,
            "Invalid view version: a sql representation needs sql and dialect",
        ),
        (
            view_version_json(1, sql=""),
            InvalidUpdate,
            "Invalid view version: a sql representation needs sql and dialect",
        ),
    ],
)
def test_version_that_contradicts_itself_is_refused(
    version: Json, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        created(version)

    assert str(caught.value) == message


def test_representations_of_other_kinds_are_kept() -> None:
    version = view_version_json(1)
    version["representations"] += [{"type": "plan", "x": 1}, {"type": "plan", "x": 1}]

    assert created(version).current_version.to_object() == version


def test_property_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidUpdate, match="must be true or false"):
        new_view_metadata(
            schema=schema(),
            version=ViewVersion.from_json(encoded(view_version_json(1))),
            location=Location("s3://bucket/v"),
            properties={"replace.drop-dialect.allowed": "maybe"},
            uuid=TableUuid(UUID),
            now_ms=NOW_MS,
        )

"""View metadata: reading it, what is refused, and when two versions define the same."""

from __future__ import annotations

import json

import pytest

from app.engine.model.table_metadata import read_table_metadata
from app.engine.model.view_metadata import SqlRepresentation, ViewVersion, read_view_metadata
from app.errors import InvalidMetadata
from tests.unit.engine.documents import (
    UUID,
    Json,
    column,
    encoded,
    schema_json,
    table_json,
    view,
    view_json,
    view_version_json,
)


def refusal(document: object) -> str:
    with pytest.raises(InvalidMetadata) as caught:
        read_view_metadata(encoded(document))
    return str(caught.value)


def version(document: Json) -> ViewVersion:
    return ViewVersion.from_json(encoded(document))


def test_document_is_read_and_written_without_loss() -> None:
    first = view_version_json(1, "spark", "trino") | {"default-catalog": "prod", "vendor": 1}
    first["representations"] += [{"type": "image", "url": "x"}, {"type": "sql", "sql": "", "vendor": [None]}]
    document = view_json(first, view_version_json(2), vendor={"a": None}, properties={"owner": "ü"})
    document["schemas"] = [schema_json(column(1, "id", note=1)) | {"vendor": 2}]
    document["version-log"][0]["vendor"] = 3

    metadata = read_view_metadata(encoded(document))

    assert json.loads(metadata.to_json()) == document
    assert metadata.uuid == UUID
    assert metadata.current_version.version_id == 2
    assert metadata.current_version == metadata.versions_by_id[2]


def test_view_without_properties_has_none() -> None:
    document = view_json()
    del document["properties"]

    assert read_view_metadata(encoded(document)).properties == {}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format-version": 2}, "format-version: Input should be less than or equal to 1"),
        ({"format-version": 0}, "format-version: Input should be greater than or equal to 1"),
        ({"format-version": True}, "format-version: Input should be a valid integer"),
        ({"format-version": 1.0}, "format-version: Input should be a valid integer"),
        ({"view-uuid": None}, "view-uuid: Input should be a valid string"),
        ({"current-version-id": 9}, "Cannot find current version 9 in view versions"),
        ({"versions": []}, "Cannot find current version 1 in view versions"),
        (
            {"versions": [view_version_json(1), view_version_json(1)]},
            "Two view versions have the same version-id",
        ),
        ({"schemas": [schema_json(), schema_json()]}, "Two schemas of the view have the same schema-id"),
        (
            {"versions": [view_version_json(1, schema_id=5)]},
            "Cannot find schema 5 of view version 1 in schemas",
        ),
    ],
)
def test_document_that_is_wrong_is_refused(changes: Json, reason: str) -> None:
    assert refusal(view_json() | changes) == reason


@pytest.mark.parametrize(
    "name",
    ["view-uuid", "format-version", "location", "schemas", "current-version-id", "versions", "version-log"],
)
def test_missing_field_is_named(name: str) -> None:
    document = view_json()
    del document[name]

    assert refusal(document) == f"{name}: Field required"


def test_dialects_are_compared_without_case() -> None:
    assert version(view_version_json(1, "Spark", "TRINO")).dialects == {"spark", "trino"}
    assert SqlRepresentation(type="sql").dialect is None


def test_versions_define_the_same_whatever_their_ids_and_times() -> None:
    one = version(view_version_json(1))

    assert one.meaning == version(view_version_json(2)).meaning


@pytest.mark.parametrize(
    "changes",
    [
        {"summary": {}},
        {"representations": [{"type": "sql", "sql": "select 2", "dialect": "spark"}]},
        {"default-catalog": "prod"},
        {"default-namespace": ["other"]},
        {"schema-id": 1},
    ],
)
def test_versions_that_differ_in_anything_else_do_not_define_the_same(changes: Json) -> None:
    assert version(view_version_json(1)).meaning != version(view_version_json(1) | changes).meaning


def test_views_versions_are_found_by_id() -> None:
    assert list(view(view_version_json(3), view_version_json(5)).versions_by_id) == [3, 5]


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_metadata_of_the_other_kind_is_called_so(format_version: int) -> None:
    with pytest.raises(InvalidMetadata) as caught:
        read_table_metadata(encoded(view_json(view_version_json(1))))

    assert str(caught.value) == "It is the metadata of a view, not of a table"
    assert refusal(table_json(format_version)) == "It is the metadata of a table, not of a view"

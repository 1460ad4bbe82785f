"""Laws of table metadata: nothing is lost in reading and writing, and no document breaks the reader."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from app.engine.model.table_metadata import TableMetadata, check_invariants, complete, read_table_metadata
from app.errors import InvalidMetadata
from tests.strategies.json_values import Json, json_values, mutations
from tests.strategies.table_documents import early_v1_documents, table_documents


def encoded(document: Json) -> bytes:
    return json.dumps(document).encode()


@given(table_documents())
def test_document_that_this_build_writes_is_read_and_written_without_loss(document: Json) -> None:
    metadata = read_table_metadata(encoded(document))

    assert json.loads(metadata.to_json()) == document


@given(table_documents() | early_v1_documents())
def test_writing_and_reading_again_changes_nothing(document: Json) -> None:
    metadata = read_table_metadata(encoded(document))

    again = read_table_metadata(metadata.to_json())

    assert again == metadata
    assert again.to_json() == metadata.to_json()


@given(early_v1_documents())
def test_early_v1_table_gets_the_lists_that_later_writers_keep(document: Json) -> None:
    metadata = read_table_metadata(encoded(document))

    assert [schema.fields for schema in metadata.schemas] == [metadata.current_schema.fields]
    assert [field.field_id for field in metadata.default_spec.fields] == [
        1000 + position for position in range(len(document["partition-spec"]))
    ]
    assert metadata.default_sort_order.is_unsorted
    assert set(metadata.snapshot_refs) == ({"main"} if document["current-snapshot-id"] != -1 else set())


@given((table_documents() | early_v1_documents()).flatmap(mutations))
def test_damaged_document_is_refused_in_words_or_read_whole(content: bytes) -> None:
    try:
        metadata = read_table_metadata(content)
    except InvalidMetadata as error:
        assert str(error)  # noqa: PT017 - either outcome is right, and each has its law
        return

    check_invariants(metadata)
    written = metadata.to_json()
    assert read_table_metadata(written).to_json() == written


@given(json_values() | st.dictionaries(st.sampled_from(["format-version", "schemas"]), json_values()))
def test_any_json_is_refused_as_table_metadata(value: Json) -> None:
    try:
        complete(TableMetadata.from_json(encoded(value)))
    except InvalidMetadata as error:
        assert str(error)  # noqa: PT017 - nothing that this strategy makes is a table
    else:
        raise AssertionError("too little was asked of a table")


@given(st.binary(max_size=40))
def test_any_bytes_are_refused_as_table_metadata(content: bytes) -> None:
    try:
        read_table_metadata(content)
    except InvalidMetadata as error:
        assert str(error)  # noqa: PT017 - nothing that this strategy makes is a table
    else:
        raise AssertionError("too little was asked of a table")


@given(table_documents())
def test_metadata_with_referenced_snapshots_only_keeps_every_log_and_every_ref(document: Json) -> None:
    metadata = read_table_metadata(encoded(document))

    lean = metadata.with_referenced_snapshots_only()

    assert {item.snapshot_id for item in lean.snapshots} == {
        ref.snapshot_id for ref in metadata.snapshot_refs.values()
    }
    assert lean.replace(snapshots=metadata.snapshots) == metadata
    check_invariants(lean)

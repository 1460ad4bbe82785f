"""Laws of view metadata: nothing is lost in reading and writing, and no document breaks the reader."""

from __future__ import annotations

import json

from hypothesis import given

from app.engine.model.view_metadata import read_view_metadata
from app.errors import InvalidMetadata
from tests.strategies.json_values import Json, mutations
from tests.strategies.view_documents import view_documents


@given(view_documents())
def test_document_is_read_and_written_without_loss(document: Json) -> None:
    metadata = read_view_metadata(json.dumps(document).encode())

    assert json.loads(metadata.to_json()) == document
    assert read_view_metadata(metadata.to_json()) == metadata


@given(view_documents().flatmap(mutations))
def test_damaged_document_is_refused_in_words_or_read_whole(content: bytes) -> None:
    try:
        metadata = read_view_metadata(content)
    except InvalidMetadata as error:
        assert str(error)  # noqa: PT017 - either outcome is right, and each has its law
        return

    written = metadata.to_json()
    assert read_view_metadata(written).to_json() == written
    assert metadata.current_version in metadata.versions

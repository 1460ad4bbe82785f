from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from app.engine.model.files.delete_files import DELETE_FILE_PATH_ID, is_deletion_vector, referenced_path
from app.engine.model.files.manifests import DataFile, FileContent
from tests.builders.branches import position_deletes, vector


def test_what_position_deletes_refer_to() -> None:
    def bounded(lower: bytes, upper: bytes | None) -> DataFile:
        uppers: Mapping[int, bytes] = {} if upper is None else {DELETE_FILE_PATH_ID: upper}
        return replace(
            position_deletes("p", "a"), lower_bounds={DELETE_FILE_PATH_ID: lower}, upper_bounds=uppers
        )

    assert referenced_path(position_deletes("p", "a", of="old")) == "old"
    assert referenced_path(position_deletes("p", "a")) is None
    assert referenced_path(bounded(b"old", b"old")) == "old"
    assert referenced_path(bounded(b"old", b"older")) is None
    assert referenced_path(bounded(b"old", None)) is None


def test_deletion_vectors_are_position_deletes_in_puffin_files() -> None:
    assert is_deletion_vector(vector("v", of="old"))
    assert not is_deletion_vector(position_deletes("p", "a", of="old"))
    assert not is_deletion_vector(replace(vector("v", of="old"), content=FileContent.DATA))

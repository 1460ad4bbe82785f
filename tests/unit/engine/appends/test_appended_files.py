"""Bounds of described files, of types whose values have no order or more than one."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from app.engine.appends.appended_files import ReadyFile
from app.engine.model.files.manifests import DataFile, FileContent
from app.engine.model.ids import SpecId
from tests.builders.parquet_files import PATH, column, table_of

LESS, MORE = struct.pack("<d", 0.75), struct.pack("<d", 2.0)


@pytest.mark.parametrize(
    ("kind", "lower", "upper"),
    [
        ("geometry", LESS * 2, MORE * 2),
        ("geography", LESS * 2, MORE * 2),
        ("variant", b"\x01\x00\x00\x0c\x05", b"\x01\x00\x00\x0c\x04"),
        ("uuid", UUID(int=1 << 127).bytes, UUID(int=1).bytes),  # in the order of early Java writers
    ],
)
def test_bounds_that_are_no_bytes_in_order_are_kept(kind: str, lower: bytes, upper: bytes) -> None:
    file = DataFile(
        FileContent.DATA, PATH, "PARQUET", SpecId(0), (), 1, 1,
        null_value_counts={1: 0}, lower_bounds={1: lower}, upper_bounds={1: upper},
    )  # fmt: skip

    made = ReadyFile(PATH, None, (), file).data_file(table_of([column(1, "c", kind)], format_version=3))

    assert (made.lower_bounds, made.upper_bounds) == ({1: lower}, {1: upper})

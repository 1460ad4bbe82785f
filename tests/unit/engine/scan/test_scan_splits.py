"""Splits: where files are cut, and how the pieces are put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from app.engine.expressions.expressions import ALWAYS_TRUE
from app.engine.model.files.manifests import DataFile, FileContent
from app.engine.model.ids import Location, SpecId
from app.engine.scan.scan_planner import PlannedFile
from app.engine.scan.scan_splits import SplitSettings, combined, splits_of
from app.errors import InvalidUpdate


def file(
    size: int,
    offsets: Sequence[int] | None = None,
    kind: str = "parquet",
    deletes: Sequence[DataFile] = (),
    name: str = "f",
) -> PlannedFile:
    content = DataFile(FileContent.DATA, Location(name), kind, SpecId(0), (), 1, size)
    if offsets is not None:
        content = DataFile(
            FileContent.DATA, Location(name), kind, SpecId(0), (), 1, size, split_offsets=tuple(offsets)
        )
    return PlannedFile(content, deletes, ALWAYS_TRUE)


def cuts(planned: PlannedFile, target: int) -> list[tuple[int, int]]:
    return [(split.start, split.length) for split in splits_of(planned, target)]


def test_file_is_cut_where_row_groups_start() -> None:
    assert cuts(file(100, [4, 40, 70]), 10) == [(4, 36), (40, 30), (70, 30)]


@pytest.mark.parametrize("offsets", [None, [], [4, 4], [40, 4], [4, 100], [4, 200]])
def test_file_without_sensible_offsets_is_cut_by_size(offsets: list[int] | None) -> None:
    assert cuts(file(100, offsets), 40) == [(0, 40), (40, 40), (80, 20)]


def test_file_of_an_unknown_format_is_not_cut() -> None:
    assert cuts(file(100, [4, 40], kind="vortex"), 10) == [(0, 100)]


def test_every_byte_is_in_one_piece() -> None:
    assert sum(length for _, length in cuts(file(1_000_003), 997)) == 1_000_003


def groups(files: Sequence[PlannedFile], settings: SplitSettings) -> list[list[tuple[str, int, int]]]:
    return [
        [(split.planned.file.file_path, split.start, split.length) for split in group]
        for group in combined(files, settings)
    ]


def test_small_files_are_read_together_up_to_the_target() -> None:
    files = [file(30, name=name) for name in "abcd"]

    assert groups(files, SplitSettings(100, 10, 1)) == [
        [("a", 0, 30), ("b", 0, 30), ("c", 0, 30)],
        [("d", 0, 30)],
    ]


def test_opening_a_file_has_a_price() -> None:
    files = [file(1, name=name) for name in "abc"]

    assert [len(group) for group in groups(files, SplitSettings(100, 10, 50))] == [2, 1]


def test_deletes_are_read_too() -> None:
    delete = DataFile(FileContent.POSITION_DELETES, Location("d"), "parquet", SpecId(0), (), 1, 60)
    vector = DataFile(
        FileContent.POSITION_DELETES,
        Location("v"),
        "puffin",
        SpecId(0),
        (),
        1,
        10_000,
        content_size_in_bytes=5,
    )

    assert len(groups([file(30, deletes=[delete]), file(30, name="g")], SplitSettings(100, 10, 1))) == 2
    assert len(groups([file(30, deletes=[vector]), file(30, name="g")], SplitSettings(100, 10, 1))) == 1


def test_neighbours_of_one_file_are_one_piece() -> None:
    assert groups([file(100, [4, 40, 70])], SplitSettings(1000, 10, 1)) == [[("f", 4, 96)]]


def test_later_pieces_fill_earlier_groups_within_the_lookback() -> None:
    files = [file(size, name=name) for name, size in (("a", 60), ("b", 70), ("c", 80), ("d", 40))]

    assert [[item[0] for item in group] for group in groups(files, SplitSettings(100, 10, 1))] == [
        ["a", "d"],
        ["b"],
        ["c"],
    ]
    # With room for one open group the fullest is done when the next is opened.
    assert [[item[0] for item in group] for group in groups(files, SplitSettings(100, 1, 1))] == [
        ["b"],
        ["c"],
        ["a", "d"],
    ]


def test_pieces_come_before_all_files_are_looked_at() -> None:
    """A table may have millions of them."""
    looked_at: list[str] = []

    def files() -> Iterator[PlannedFile]:
        for name in "abcdef":
            looked_at.append(name)
            yield file(100, name=name)

    pieces = combined(files(), SplitSettings(100, 2, 1))

    assert [split.planned.file.file_path for split in next(pieces)] == ["a"]
    assert looked_at == ["a", "b", "c"]
    assert len(list(pieces)) == 5


def test_settings_are_those_of_the_table() -> None:
    properties = {
        "read.split.target-size": "5",
        "read.split.planning-lookback": "6",
        "read.split.open-file-cost": "7",
    }

    assert SplitSettings.of({}) == SplitSettings(134_217_728, 10, 4_194_304)
    assert SplitSettings.of(properties) == SplitSettings(5, 6, 7)


@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_settings_that_make_no_sense_are_refused(value: str) -> None:
    with pytest.raises(InvalidUpdate):
        SplitSettings.of({"read.split.target-size": value})

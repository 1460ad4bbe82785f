from __future__ import annotations

from pathlib import Path

import pytest

from app.engine.model.identifiers import Namespace, TableIdentifier
from app.moving.reports import MoveLine, MoveReport, MoveState
from app.moving.sources import Entry, SourceFailed

ORDERS = TableIdentifier(Namespace(("eu.west", "sales")), "orders")
LINE = MoveLine(
    Entry(ORDERS, "view"),
    ORDERS,
    "adopt",
    MoveState.BEGUN,
    "s3://a",
    "s3://b",
    "uuid",
    None,
    ("a",),
    ("b",),
    {"n": 1},
)


def test_last_line_of_an_entry_counts_and_half_a_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "report.ndjson"
    report = MoveReport(path, "old", "new")
    report.write(LINE)
    report.write(LINE.but(state=MoveState.DONE))
    with path.open("a") as file:
        file.write('{"entry": {"ty')

    again = MoveReport(path, "old", "new")
    assert again.earlier == {LINE.entry: LINE.but(state=MoveState.DONE)}
    again.write(LINE.but(state=MoveState.FAILED, reason="no"))
    assert MoveReport(path, "old", "new").earlier[LINE.entry].reason == "no"
    assert len(path.read_text().splitlines()) == 5


def test_names_with_separators_of_lines_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "report.ndjson"
    report = MoveReport(path, "old", "new")
    for letter in "\u2028\u2029\x85\x0b\x1c\ud800":
        name = TableIdentifier(ORDERS.namespace, f"a{letter}b")
        report.write(LINE.but(entry=Entry(name), target=name))

    assert MoveReport(path, "old", "new").earlier == report.earlier


def test_line_that_ends_in_the_middle_of_a_character_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "report.ndjson"
    report = MoveReport(path, "old", "new")
    report.write(LINE)
    path.write_bytes(path.read_bytes() + '{"entry": {"name": ["ä'.encode()[:-1])

    assert MoveReport(path, "old", "new").earlier == {LINE.entry: LINE}


def test_report_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.ndjson"
    MoveReport(path, "old", "new").begin()
    with pytest.raises(
        SourceFailed, match="is the report of something else: name another file with --report"
    ):
        MoveReport(path, "other", "new")
    path.write_text("# notes\n")
    with pytest.raises(SourceFailed, match="is not the report of a move"):
        MoveReport(path, "old", "new")


@pytest.mark.parametrize("length", [0, 1, 20, -1])
def test_report_whose_head_was_not_written_to_its_end_is_begun_anew(tmp_path: Path, length: int) -> None:
    path = tmp_path / "report.ndjson"
    MoveReport(path, "old", "new").begin()
    head = path.read_bytes()
    path.write_bytes(head[:length])

    assert MoveReport(path, "old", "new", writes=False).earlier == {}
    assert path.read_bytes() == head[:length]
    MoveReport(path, "old", "new").write(LINE)

    assert path.read_bytes().startswith(head)
    assert MoveReport(path, "old", "new").earlier == {LINE.entry: LINE}


def test_nothing_is_kept_without_a_file() -> None:
    report = MoveReport(None, "old", "new")
    report.write(LINE)

    assert report.earlier == {LINE.entry: LINE}


def test_a_report_that_cannot_be_written_says_what_is_true_of_what_was_begun(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    report = MoveReport(tmp_path / "place" / "report.ndjson", "old", "new")
    report.write(LINE)
    (tmp_path / "place").rename(tmp_path / "elsewhere")

    with pytest.raises(
        SourceFailed, match=r"Nothing more is moved without it\. What was begun may be in both catalogs"
    ):
        report.write(LINE.but(state=MoveState.DONE))

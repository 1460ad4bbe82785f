"""Checksums that Hadoop keeps beside local files: they go with their files, and nothing else does."""

from __future__ import annotations

from pathlib import Path

from app.engine.model.ids import Location
from app.fileio.local import LocalFiles


def _location(path: Path) -> Location:
    return Location(str(path))


def test_the_checksum_that_hadoop_keeps_beside_a_file_goes_with_it(tmp_path: Path) -> None:
    files = LocalFiles()
    for name in ("a.parquet", ".a.parquet.crc", ".b.parquet.crc", "a.parquet.crc", ".folder.crc"):
        files.write_new(_location(tmp_path / name), b"")
    (tmp_path / "folder").mkdir()

    files.delete(_location(tmp_path / "a.parquet"))
    files.delete(_location(tmp_path / "folder"))

    left = {".b.parquet.crc", "a.parquet.crc", ".folder.crc", "folder"}
    assert {file.name for file in tmp_path.iterdir()} == left


def test_a_checksum_goes_also_if_its_file_went_before_it(tmp_path: Path) -> None:
    files = LocalFiles()
    files.write_new(_location(tmp_path / ".a.crc"), b"")

    files.delete(_location(tmp_path / "a"))

    assert list(tmp_path.iterdir()) == []


def test_a_file_goes_whose_checksum_could_have_no_name_or_cannot_go(tmp_path: Path) -> None:
    files = LocalFiles()
    for name in ("a" * 255, "b"):
        files.write_new(_location(tmp_path / name), b"")
    files.write_new(_location(tmp_path / ".b.crc" / "in"), b"")

    for name in ("a" * 255, "b"):
        files.delete(_location(tmp_path / name))

    assert [file.name for file in tmp_path.iterdir()] == [".b.crc"]

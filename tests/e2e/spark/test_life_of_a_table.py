"""The life of a table in seven steps; after each, exactly the expected files exist and say the expected things."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tests.servers.spark import Sql, path_of

pytestmark = pytest.mark.spark

EXISTING, ADDED, DELETED = 0, 1, 2


@dataclass(frozen=True)
class Files:
    """All files of a table, by kind."""

    metadata: frozenset[str]
    lists: frozenset[str]
    manifests: frozenset[str]
    data: frozenset[str]

    def minus(self, before: Files) -> Files:
        """Answer what is here and was not there."""
        return Files(*(mine - theirs for mine, theirs in zip(self._kinds(), before._kinds(), strict=True)))

    def counts(self) -> tuple[int, int, int, int]:
        """Answer the number of metadata files, manifest lists, manifests and data files."""
        metadata, lists, manifests, data = (len(files) for files in self._kinds())
        return metadata, lists, manifests, data

    def _kinds(self) -> tuple[frozenset[str], ...]:
        return self.metadata, self.lists, self.manifests, self.data


@dataclass(frozen=True)
class Table:
    """A table under observation, and the folder that holds it."""

    sql: Sql
    folder: Path

    def files(self) -> Files:
        """List every file in the table's folder; each must be of a known kind."""
        found = {
            str(file.relative_to(self.folder))
            for file in self.folder.rglob("*")
            if file.is_file() and not (file.name.startswith(".") and file.name.endswith(".crc"))
        }
        kinds = Files(
            metadata=frozenset(file for file in found if file.endswith(".metadata.json")),
            lists=frozenset(file for file in found if file.startswith("metadata/snap-")),
            manifests=frozenset(
                file for file in found if file.endswith(".avro") and not file.startswith("metadata/snap-")
            ),
            data=frozenset(file for file in found if file.startswith("data/")),
        )
        assert sum(kinds.counts()) == len(found), found
        return kinds

    def manifests(self) -> frozenset[str]:
        """Read which manifests the current snapshot's list names."""
        return frozenset(
            str(path_of(manifest["manifest_path"]).relative_to(self.folder))
            for manifest in read_avro(path_of(self._newest_list()))
        )

    def _newest_list(self) -> str:
        listed: str = self.sql.one(
            "SELECT manifest_list FROM our.life.snapshots ORDER BY committed_at DESC LIMIT 1"
        )
        return listed

    def entries(self) -> list[tuple[int, int, int, str]]:
        """Read the current snapshot's manifests: status, data and file sequence number, partition of every entry."""
        listed = self._newest_list()
        return sorted(
            entry
            for manifest in read_avro(path_of(listed))
            for entry in (
                (
                    entry["status"],
                    _inherited(entry["sequence_number"], manifest["sequence_number"]),
                    _inherited(entry["file_sequence_number"], manifest["sequence_number"]),
                    entry["data_file"]["partition"]["day"],
                )
                for entry in read_avro(path_of(manifest["manifest_path"]))
            )
        )


def read_avro(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for record in fastavro.reader(file):
            assert isinstance(record, dict)
            yield record


def partitions(files: Files) -> list[str]:
    """Return the partition folder of each data file."""
    return sorted(file.split("/")[1] for file in files.data)


def _inherited(number: int | None, of_manifest: int) -> int:
    return of_manifest if number is None else number


def test_f27_seven_steps(sql: Sql) -> None:
    # 1. create: one metadata file, nothing else
    sql("CREATE TABLE life (id int, day string) USING iceberg PARTITIONED BY (day)")
    location = next(text for name, text, _ in sql("DESCRIBE TABLE EXTENDED life") if name == "Location")
    table = Table(sql, path_of(location))
    created = table.files()
    assert created.counts() == (1, 0, 0, 0)
    assert sql("SELECT * FROM our.life.snapshots") == []

    # 2. insert into two partitions: a metadata file, a list, a manifest, a data file a partition
    sql("INSERT INTO life VALUES (1, 'mon'), (2, 'tue')")
    inserted = table.files()
    assert inserted.minus(created).counts() == (1, 1, 1, 2)
    assert created.minus(inserted).counts() == (0, 0, 0, 0)
    assert table.entries() == [(ADDED, 1, 1, "mon"), (ADDED, 1, 1, "tue")]
    assert partitions(inserted.minus(created)) == ["day=mon", "day=tue"]

    # 3. add a column: a metadata file, nothing else
    sql("ALTER TABLE life ADD COLUMN word string")
    evolved = table.files()
    assert evolved.minus(inserted).counts() == (1, 0, 0, 0)
    assert inserted.minus(evolved).counts() == (0, 0, 0, 0)
    assert table.entries() == [(ADDED, 1, 1, "mon"), (ADDED, 1, 1, "tue")]

    # 4. insert again: the new list names the old manifest as it is, and one more
    sql("INSERT INTO life VALUES (3, 'tue', 'three'), (4, 'wed', 'four')")
    grown = table.files()
    assert grown.minus(evolved).counts() == (1, 1, 1, 2)
    assert evolved.minus(grown).counts() == (0, 0, 0, 0)
    assert partitions(grown.minus(evolved)) == ["day=tue", "day=wed"]
    assert table.manifests() == grown.manifests
    assert table.entries() == [
        (ADDED, 1, 1, "mon"),
        (ADDED, 1, 1, "tue"),
        (ADDED, 2, 2, "tue"),
        (ADDED, 2, 2, "wed"),
    ]

    # 5. delete one partition: both manifests are rewritten, no data file goes
    sql("DELETE FROM life WHERE day = 'tue'")
    thinned = table.files()
    assert thinned.minus(grown).counts() == (1, 1, 2, 0)
    assert grown.minus(thinned).counts() == (0, 0, 0, 0)
    assert table.manifests() == thinned.minus(grown).manifests
    assert table.entries() == [
        (EXISTING, 1, 1, "mon"),
        (EXISTING, 2, 2, "wed"),
        (DELETED, 1, 1, "tue"),
        (DELETED, 2, 2, "tue"),
    ]

    # 6. insert once more
    sql("INSERT INTO life VALUES (5, 'thu', 'five')")
    regrown = table.files()
    assert regrown.minus(thinned).counts() == (1, 1, 1, 1)
    assert thinned.minus(regrown).counts() == (0, 0, 0, 0)
    assert regrown.counts() == (6, 4, 5, 5)
    last_entries = [
        (EXISTING, 1, 1, "mon"),
        (EXISTING, 2, 2, "wed"),
        (ADDED, 4, 4, "thu"),
        (DELETED, 1, 1, "tue"),
        (DELETED, 2, 2, "tue"),
    ]
    assert table.entries() == last_entries
    assert table.manifests() == thinned.minus(grown).manifests | regrown.minus(thinned).manifests

    # 7. keep only the current snapshot: what only the others needed goes, metadata files stay
    newest_list = path_of(
        sql.one("SELECT manifest_list FROM our.life.snapshots ORDER BY committed_at DESC LIMIT 1")
    )
    reachable = {path_of(manifest["manifest_path"]) for manifest in read_avro(newest_list)}
    live = {path_of(file) for file in sql.column("SELECT file_path FROM our.life.files")}
    sql(
        "CALL system.expire_snapshots(table => 'our.life', retain_last => 1,"
        " older_than => TIMESTAMP '2100-01-01 00:00:00')"
    )
    left = table.files()
    assert left.minus(regrown).counts() == (1, 0, 0, 0)
    assert {table.folder / file for file in left.lists} == {newest_list}
    assert {table.folder / file for file in left.manifests} == reachable
    assert {table.folder / file for file in left.data} == live
    assert left.counts() == (7, 1, 3, 3)
    assert left.metadata > regrown.metadata
    assert partitions(left) == ["day=mon", "day=thu", "day=wed"]
    assert table.entries() == last_entries
    assert sql("SELECT * FROM life ORDER BY id") == [(1, "mon", None), (4, "wed", "four"), (5, "thu", "five")]
    versions = sorted(Path(file).name.split("-")[0] for file in left.metadata)
    assert versions == [f"{number:05}" for number in range(7)]

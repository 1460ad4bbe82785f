"""Reading and writing manifests: entries a second, beside fastavro alone and beside PyIceberg, on the same files."""

from __future__ import annotations

import io
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import fastavro
from pyiceberg import manifest as theirs
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField
from pyiceberg.partitioning import PartitionSpec as TheirSpec
from pyiceberg.schema import Schema as TheirSchema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record

from app.engine.model.data_types.types import PrimitiveType, parse_primitive
from app.engine.model.files.entry_filters import ValueRange
from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SnapshotId, SortOrderId, SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.writer import write_manifest
from benchmarks.report import Row, rate

ENTRIES: Final = 5_000
MANIFESTS: Final = 4
DAYS: Final = 400
FIRST_DAY: Final = 19_000
SNAPSHOT: Final = SnapshotId(5)
REPETITIONS: Final = 3
TYPES: Final = "long date string double int timestamp string double long int string double".split()
_FORMS: Final[dict[str, Callable[[int], bytes]]] = {
    "long": lambda number: struct.pack("<q", number * 1000),
    "date": lambda number: struct.pack("<i", FIRST_DAY + number % DAYS),
    "string": lambda number: f"name-{number:011d}".encode(),
    "double": lambda number: struct.pack("<d", number / 7),
    "int": lambda number: struct.pack("<i", number),
    "timestamp": lambda number: struct.pack("<q", 1_700_000_000_000_000 + number),
}
SCHEMA: Final = Schema.from_object(
    {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": at, "name": f"column_{at}", "required": False, "type": kind}
            for at, kind in enumerate(TYPES, 1)
        ],
    }
)
SPEC: Final = PartitionSpec.from_object(
    {"spec-id": 0, "fields": [{"name": "day", "transform": "identity", "source-id": 2, "field-id": 1000}]}
)
LONG: Final[PrimitiveType] = parse_primitive("long")


def entry(number: int) -> ManifestEntry:
    """Return an entry of a table with twelve columns with bounds, by the day."""
    name = f"00000-{number}-3f2a7b1c-5d6e-4f70-8a9b-0c1d2e3f4a5b-00001.parquet"
    path = f"s3://bucket/warehouse/db/table/data/day={number % DAYS}/{name}"
    columns = range(1, len(TYPES) + 1)
    file = DataFile(
        FileContent.DATA,
        Location(path),
        "parquet",
        SpecId(0),
        (FIRST_DAY + number % DAYS,),
        10_000 + number,
        1_000_000 + 3 * number,
        column_sizes={column: 4_000 + 100 * column + number % 50 for column in columns},
        value_counts=dict.fromkeys(columns, 10_000 + number),
        null_value_counts={column: number if column == 3 else 0 for column in columns},
        nan_value_counts=dict.fromkeys((4, 8, 12), 0),
        lower_bounds={column: _FORMS[kind](number) for column, kind in enumerate(TYPES, 1)},
        upper_bounds={column: _FORMS[kind](number + 50) for column, kind in enumerate(TYPES, 1)},
        split_offsets=(4,),
        sort_order_id=SortOrderId(0),
    )
    return ManifestEntry(EntryStatus.ADDED, None, None, None, file)


def measure(folder: Path) -> list[Row]:
    """Measure a few manifests; every figure is the best of some, in processor time."""
    groups = [
        [entry(at) for at in range(start, start + ENTRIES)]
        for start in range(0, MANIFESTS * ENTRIES, ENTRIES)
    ]
    contents = [_written(entries) for entries in groups]
    places = [folder / f"manifest-{at}.avro" for at in range(MANIFESTS)]
    for place, content in zip(places, contents, strict=True):
        place.write_bytes(content)
    records: list[list[Any]] = [list(fastavro.reader(io.BytesIO(content))) for content in contents]
    writer_schema = fastavro.reader(io.BytesIO(contents[0])).writer_schema

    beside_fastavro = _speed(
        lambda: sum(1 for content in contents for _ in fastavro.reader(io.BytesIO(content)))
    )
    beside_pyiceberg = _speed(lambda: sum(len(found) for found in _read_by_pyiceberg(places)))
    parsed = [_columns(content) for content in contents]
    wanted = ValueRange(1, LONG, 5_000_000, 5_100_000)
    speeds = {
        "read as columns": _speed(lambda: sum(len(_columns(content)) for content in contents)),
        "read, and make every entry": _speed(
            lambda: sum(len(list(_columns(content))) for content in contents)
        ),
        f"read, and make those of one day of {DAYS}": _speed(
            lambda: _went_through(
                map(_columns, contents),
                lambda found: found.live_in(lambda partition: partition[0] == FIRST_DAY),
            )
        ),
        "read, and make those that a column's bounds leave (1 of 100)": _speed(
            lambda: _went_through(map(_columns, contents), lambda found: found.live_in(_any, [wanted]))
        ),
        "make the same again, of columns in memory": _speed(
            lambda: _went_through(parsed, lambda found: found.live_in(_any, [wanted]))
        ),
    }
    rows = []
    for what, speed in speeds.items():
        rows.append(
            Row(
                what, rate(speed), f"fastavro: {rate(beside_fastavro)}", f"{speed / beside_fastavro:.1f}", "–"
            )
        )
        rows.append(
            Row(
                what,
                rate(speed),
                f"PyIceberg: {rate(beside_pyiceberg)}",
                f"{speed / beside_pyiceberg:.1f}",
                "–",
            )
        )
    writing = _speed(lambda: len([_written(entries) for entries in groups]) * ENTRIES)
    by_fastavro = _speed(lambda: sum(_write_by_fastavro(writer_schema, found) for found in records))
    their_entries = [_their_entry(ours) for ours in groups[0]]
    by_pyiceberg = _speed(lambda: _write_by_pyiceberg(folder / "theirs.avro", their_entries))
    rows.append(
        Row("write", rate(writing), f"fastavro: {rate(by_fastavro)}", f"{writing / by_fastavro:.1f}", "–")
    )
    rows.append(
        Row("write", rate(writing), f"PyIceberg: {rate(by_pyiceberg)}", f"{writing / by_pyiceberg:.1f}", "–")
    )
    return rows


def _speed(work: Callable[[], int]) -> float:
    """Return entries a second; the work answers how many entries it went through."""
    best = 0.0
    for _ in range(REPETITIONS):
        started = time.process_time()
        count = work()
        best = max(best, count / (time.process_time() - started))
    return best


def _written(entries: Sequence[ManifestEntry]) -> bytes:
    return write_manifest(entries, schema=SCHEMA, spec=SPEC, format_version=2, snapshot_id=SNAPSHOT).content


def _columns(content: bytes) -> ManifestColumns:
    listed = ManifestFile(
        Location("memory://m.avro"), len(content), SpecId(0), sequence_number=1, added_snapshot_id=SNAPSHOT
    )
    return ManifestColumns(listed, content)


def _went_through(
    manifests: Iterable[ManifestColumns], ask: Callable[[ManifestColumns], Iterator[ManifestEntry]]
) -> int:
    """Return how many entries manifests have, once each was asked for some of them."""
    count = 0
    for found in manifests:
        list(ask(found))
        count += len(found)
    return count


def _any(_partition: tuple[Any, ...]) -> bool:
    return True


def _read_by_pyiceberg(places: Sequence[Path]) -> Iterator[list[theirs.ManifestEntry]]:
    files = PyArrowFileIO()
    for place in places:
        yield theirs.ManifestFile.from_args(
            manifest_path=str(place),
            manifest_length=place.stat().st_size,
            partition_spec_id=0,
            content=theirs.ManifestContent.DATA,
            sequence_number=1,
            min_sequence_number=1,
            added_snapshot_id=SNAPSHOT,
        ).fetch_manifest_entry(files)


def _write_by_fastavro(schema: Any, records: Sequence[dict[str, Any]]) -> int:
    fastavro.writer(io.BytesIO(), schema, records, codec="deflate", codec_compression_level=1)
    return len(records)


def _their_entry(ours: ManifestEntry) -> theirs.ManifestEntry:
    file = ours.file
    metrics = (
        "column_sizes",
        "value_counts",
        "null_value_counts",
        "nan_value_counts",
        "lower_bounds",
        "upper_bounds",
    )
    return theirs.ManifestEntry.from_args(
        status=theirs.ManifestEntryStatus.ADDED,
        snapshot_id=SNAPSHOT,
        sequence_number=None,
        file_sequence_number=None,
        data_file=theirs.DataFile.from_args(
            content=theirs.DataFileContent.DATA,
            file_path=file.file_path,
            file_format="PARQUET",
            partition=Record(*file.partition),
            record_count=file.record_count,
            file_size_in_bytes=file.file_size_in_bytes,
            split_offsets=[4],
            sort_order_id=0,
            **{name: getattr(file, name) for name in metrics},
        ),
    )


def _write_by_pyiceberg(place: Path, entries: Sequence[theirs.ManifestEntry]) -> int:
    schema = TheirSchema.model_validate_json(SCHEMA.to_json())
    spec = TheirSpec(
        PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="day"), spec_id=0
    )
    output = PyArrowFileIO().new_output(str(place))
    with theirs.write_manifest(2, spec, schema, output, SNAPSHOT, "deflate") as writer:
        for item in entries:
            writer.add_entry(item)
    return len(entries)

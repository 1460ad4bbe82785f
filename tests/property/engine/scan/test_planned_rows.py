"""The law of planning: a plan, read with its deletes and residuals, gives exactly the rows that match.

Tables have two partition specs, files of all ages, position deletes, deletion vectors and equality deletes. What a
delete applies to is said again here in the plainest words, and rows are told apart by where they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from app.api.bodies.table.scans import scan_tasks_json
from app.catalog.scans.planning import ScanPage
from app.engine.change.initial import new_table_metadata
from app.engine.expressions.binding import bind
from app.engine.expressions.expression_json import parse_expression
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.data_types.values import order_key
from app.engine.model.files.delete_files import DELETE_FILE_PATH_ID
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.ids import Location, SnapshotId, SortOrderId, SpecId, TableUuid
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.scan.scan_planner import PlannedColumns, ScanPlanner
from app.engine.scan.scan_scope import ScanRequest, scope_of
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.writer import write_manifest
from tests.builders.filters import row_test
from tests.property.engine.expressions.brute_force import matches
from tests.strategies.data_files import Row, by_partition, data_files, value_in
from tests.strategies.filters import KINDS, filtered_schemas, filtered_specs, filters, rows
from tests.strategies.json_values import Json

EXACT_KINDS = [kind for kind in KINDS if kind not in ("float", "double")]
SNAPSHOT = Snapshot(
    snapshot_id=SnapshotId(1), timestamp_ms=1_700_000_000_001, manifest_list=Location("memory://list")
)
Place = tuple[str, int]


@dataclass
class Written:
    """A table as its writers know it."""

    schema: Schema
    specs: list[PartitionSpec]
    data: list[ManifestEntry] = field(default_factory=list)
    deletes: list[ManifestEntry] = field(default_factory=list)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    """By data file."""
    positions: dict[str, set[Place]] = field(default_factory=dict)
    """By file of position deletes, or deletion vector."""
    keys: dict[str, list[Row]] = field(default_factory=dict)
    """By file of equality deletes: rows that have the values."""

    def spec(self, spec_id: int) -> PartitionSpec:
        return next(spec for spec in self.specs if spec.spec_id == spec_id)

    def key(self, ids: Iterable[int], row: Row) -> list[Any]:
        columns = [self.schema.columns[field_id] for field_id in ids]  # type: ignore[index]  # an id is a number
        return [order_key(value_in(row, column, self.schema)) for column in columns]

    def deleted_by(self, delete: DataFile, file: DataFile) -> set[Place]:
        """Return the rows of a data file that a delete file says are gone, if it applies."""
        places = {(str(file.file_path), number) for number in range(len(self.rows[file.file_path]))}
        if delete.content is FileContent.POSITION_DELETES:
            return self.positions[delete.file_path] & places
        ids = delete.equality_ids or ()
        gone = [self.key(ids, row) for row in self.keys[delete.file_path]]
        return {place for place in places if self.key(ids, self.rows[place[0]][place[1]]) in gone}

    def applies(self, delete: ManifestEntry, entry: ManifestEntry) -> bool:
        """Say what the specification says."""
        age, of_delete = entry.data_sequence_number or 0, delete.data_sequence_number or 0
        same_partition = (delete.file.spec_id, _comparable(delete.file.partition)) == (
            entry.file.spec_id,
            _comparable(entry.file.partition),
        )
        if delete.file.content is FileContent.EQUALITY_DELETES:
            return age < of_delete and (same_partition or self.spec(delete.file.spec_id).is_unpartitioned)
        return age <= of_delete and same_partition

    def live(self) -> set[Place]:
        """Return where the rows of the table are."""
        found: set[Place] = set()
        for entry in self.data:
            gone: set[Place] = set()
            for delete in self.deletes:
                if self.applies(delete, entry):
                    gone |= self.deleted_by(delete.file, entry.file)
            path = str(entry.file.file_path)
            found |= {(path, number) for number in range(len(self.rows[path]))} - gone
        return found


def _comparable(partition: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(map(order_key, partition))


@st.composite
def tables(draw: st.DrawFn) -> tuple[Written, Json]:
    """Return a table, and the JSON of its schema."""
    document = draw(filtered_schemas(EXACT_KINDS))
    schema = Schema.from_object(document)
    specs = []
    for spec_id in (0, 1):
        spec = PartitionSpec.from_object(draw(filtered_specs(document)))
        specs.append(spec.replace(spec_id=SpecId(spec_id)))
    table = Written(schema, specs)
    for number in range(draw(st.integers(1, 4))):
        some = draw(st.lists(rows(schema, with_nan=False), min_size=1, max_size=4))
        spec = draw(st.sampled_from(specs))
        for part, (partition, theirs) in enumerate(by_partition(some, spec, schema)):
            path = Location(f"memory://data-{number}-{part}")
            file = draw(data_files(theirs, schema, partition))
            table.rows[path] = theirs
            table.data.append(_entry(draw, replace(file, file_path=path, spec_id=spec.spec_id)))
    for number in range(draw(st.sampled_from([0, 1, 3, 6]))):
        _delete(draw, table, number)
    for entry in table.data:
        if draw(st.integers(0, 3)) == 0:
            _deletion_vector(draw, table, entry)
    return table, document


def _deletion_vector(draw: st.DrawFn, table: Written, about: ManifestEntry) -> None:
    """Add a vector, which takes in what all position deletes of its file say."""
    path = Location("memory://vectors.puffin")
    theirs = {(str(about.file.file_path), number) for number in range(len(table.rows[about.file.file_path]))}
    places = {place for place in theirs if draw(st.booleans())}
    for delete in table.deletes:
        if delete.file.content is FileContent.POSITION_DELETES and table.applies(delete, about):
            places |= table.deleted_by(delete.file, about.file)
    # Several vectors are in one file.
    table.positions.setdefault(path, set()).update(places)
    file = replace(
        about.file,
        content=FileContent.POSITION_DELETES,
        file_path=path,
        file_format="puffin",
        record_count=len(places),
        referenced_data_file=about.file.file_path,
        content_offset=len(table.deletes),
        content_size_in_bytes=1,
        lower_bounds=None,
        upper_bounds=None,
    )
    table.deletes.append(replace(about, data_sequence_number=2, file=file))


def _entry(draw: st.DrawFn, file: DataFile) -> ManifestEntry:
    age = draw(st.integers(0, 1))
    return ManifestEntry(EntryStatus.EXISTING, SnapshotId(1), age, age, file)


def _delete(draw: st.DrawFn, table: Written, number: int) -> None:
    path = Location(f"memory://delete-{number}")
    about = draw(st.sampled_from(table.data))
    if draw(st.booleans()):
        table.deletes.append(_equality_deletes(draw, table, about, path))
        return
    named = [about]
    alone = draw(st.booleans())
    if not alone:
        # Files of one partition share position deletes.
        place = (about.file.spec_id, _comparable(about.file.partition))
        named = [
            entry for entry in table.data if (entry.file.spec_id, _comparable(entry.file.partition)) == place
        ]
    places = {
        (str(entry.file.file_path), position)
        for entry in named
        for position in range(len(table.rows[entry.file.file_path]))
        if draw(st.booleans())
    }
    table.positions[path] = places
    paths = sorted(str(entry.file.file_path) for entry in named)
    bounds = {DELETE_FILE_PATH_ID: paths[0].encode()}, {DELETE_FILE_PATH_ID: paths[-1].encode()}
    if not alone and draw(st.booleans()):
        bounds = {}, {}
    file = replace(
        about.file,
        content=FileContent.POSITION_DELETES,
        file_path=path,
        record_count=len(places),
        value_counts=None,
        null_value_counts=None,
        nan_value_counts=None,
        lower_bounds=bounds[0],
        upper_bounds=bounds[1],
        referenced_data_file=about.file.file_path if alone and draw(st.booleans()) else None,
    )
    table.deletes.append(_entry(draw, file))


def _equality_deletes(draw: st.DrawFn, table: Written, about: ManifestEntry, path: Location) -> ManifestEntry:
    spec = table.spec(about.file.spec_id)
    columns = [
        field_id
        for field_id, column in table.schema.columns.items()
        if isinstance(column.field.type, PrimitiveType)
    ]
    ids = tuple(draw(st.lists(st.sampled_from(columns), min_size=1, max_size=2, unique=True)))
    pool = [row for found in table.rows.values() for row in found]
    keys = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3))
    table.keys[path] = keys
    file = draw(data_files(keys, table.schema, about.file.partition))
    return _entry(
        draw,
        replace(
            file,
            content=FileContent.EQUALITY_DELETES,
            file_path=path,
            spec_id=spec.spec_id,
            equality_ids=tuple(map(int, ids)),
        ),
    )


@dataclass
class Source:
    """Manifests of one spec and content each, as lists or as files."""

    lists: dict[ManifestFile, Sequence[ManifestEntry]]

    def manifests(self, snapshot: Snapshot) -> Sequence[ManifestFile]:
        assert snapshot == SNAPSHOT
        return list(self.lists)

    def entries(self, manifest: ManifestFile) -> Sequence[ManifestEntry]:
        return self.lists[manifest]

    def made_one_by_one(self) -> Source:
        """Return the same manifests, whose entries are objects."""
        return Source({manifest: list(entries) for manifest, entries in self.lists.items()})


def source_of(table: Written, *, as_files: bool) -> Source:
    lists: dict[ManifestFile, Sequence[ManifestEntry]] = {}
    for spec in table.specs:
        for content, entries in (
            (ManifestContent.DATA, table.data),
            (ManifestContent.DELETES, table.deletes),
        ):
            theirs = [entry for entry in entries if entry.file.spec_id == spec.spec_id]
            written = write_manifest(
                theirs,
                schema=table.schema,
                spec=spec,
                format_version=3,
                content=content,
                snapshot_id=SnapshotId(1),
            )
            manifest = written.at(Location(f"memory://manifest-{spec.spec_id}-{content}"))
            manifest = replace(manifest, sequence_number=9)
            lists[manifest] = ManifestColumns(manifest, written.content) if as_files else theirs
    return Source(lists)


def metadata_of(table: Written) -> TableMetadata:
    empty = new_table_metadata(
        schema=table.schema,
        spec=None,
        order=None,
        location=Location("memory://t"),
        properties={"format-version": "3"},
        uuid=TableUuid("22222222-2222-2222-2222-222222222222"),
        now_ms=1_700_000_000_000,
    )
    return empty.replace(
        schemas=(table.schema,),
        current_schema_id=table.schema.schema_id,
        partition_specs=tuple(table.specs),
        default_spec_id=table.specs[0].spec_id,
        snapshots=(SNAPSHOT,),
        current_snapshot_id=SNAPSHOT.snapshot_id,
    )


@given(data=st.data(), as_files=st.booleans())
def test_reading_a_plan_gives_exactly_the_rows_that_match(data: st.DataObject, *, as_files: bool) -> None:
    table, document = data.draw(tables())
    filter_json = data.draw(st.just(True) | filters(document))
    metadata = metadata_of(table)
    scope = scope_of(metadata, ScanRequest(filter=parse_expression(filter_json)))

    planner = ScanPlanner(metadata, scope, source_of(table, as_files=as_files))
    read: set[Place] = set()
    planned_paths = []
    for candidate in planner.candidates:
        for planned in planner.files(candidate.manifest):
            path = str(planned.file.file_path)
            planned_paths.append(path)
            gone = set().union(*(table.deleted_by(delete, planned.file) for delete in planned.deletes))
            is_left = row_test(bind(planned.residual, table.schema))
            read |= {
                (path, number)
                for number, row in enumerate(table.rows[path])
                if (path, number) not in gone and is_left(row)
            }

    expected = {
        (path, number)
        for path, number in table.live()
        if matches(filter_json, table.schema, table.rows[path][number])
    }
    event(f"pruned: {len(planned_paths) < len(table.data)}, deletes: {bool(table.deletes)}")
    assert read == expected
    assert len(planned_paths) == len(set(planned_paths))


KEYS = st.sampled_from([None, b"\x00\xff%s"])
SORT_ORDERS = st.sampled_from([None, SortOrderId(0), SortOrderId(1)])
PATHS = st.text('ab/=%\\"é\x00\x1f\u2028\U0001f600', max_size=5)


@st.composite
def similar_files(draw: st.DrawFn, entry: ManifestEntry, number: int) -> list[ManifestEntry]:
    """Return entries of files that differ from one in what their writers choose, some of them deleted."""
    alike = draw(st.lists(st.tuples(KEYS, SORT_ORDERS), min_size=1, max_size=2))
    differing = st.tuples(
        st.sampled_from([EntryStatus.EXISTING] * 3 + [EntryStatus.ADDED, EntryStatus.DELETED]),
        PATHS,
        st.integers(0, 2**40),
        st.none() | st.lists(st.integers(4, 9), max_size=2).map(tuple),
        st.none() | st.integers(0, 2**40),
        st.sampled_from(alike),
    )
    found = []
    for at, (status, path, size, offsets, row_id, (key, order)) in enumerate(
        draw(st.lists(differing, min_size=4, max_size=6))
    ):
        file = replace(
            entry.file,
            file_path=Location(f"memory://{number}-{at}{path}"),
            file_size_in_bytes=size,
            split_offsets=offsets,
            key_metadata=key,
            sort_order_id=order,
            first_row_id=row_id,
        )
        found.append(replace(entry, status=status, file=file))
    return found


@given(data=st.data(), with_deletes=st.sampled_from([False, False, False, True]))
def test_plan_of_columns_is_written_like_one_of_entries(data: st.DataObject, *, with_deletes: bool) -> None:
    table, document = data.draw(tables())
    table.data = [
        similar for at, entry in enumerate(table.data) for similar in data.draw(similar_files(entry, at))
    ]
    if not with_deletes:
        table.deletes = []
    filter_json = data.draw(st.just(True) | filters(document))
    stats = data.draw(st.just(()) | st.just(()) | st.just(tuple(field.name for field in table.schema.fields)))
    metadata = metadata_of(table)
    scope = scope_of(metadata, ScanRequest(filter=parse_expression(filter_json), stats_fields=stats))
    source = source_of(table, as_files=True)
    planners = [ScanPlanner(metadata, scope, each) for each in (source, source.made_one_by_one())]

    of_columns, of_entries = (
        [planner.files(candidate.manifest) for candidate in planner.candidates] for planner in planners
    )

    if not table.deletes:
        assert all(isinstance(run, PlannedColumns) for run in of_columns)
    assert not any(isinstance(run, PlannedColumns) for run in of_entries)
    in_lists = [list(run) for run in of_entries]
    event(f"files: {sum(map(len, in_lists)) > 0}, columns: {not table.deletes and not stats}")
    for run, expected in zip(of_columns, in_lists, strict=True):
        if isinstance(run, PlannedColumns):
            assert len(run) == len(expected)
            assert run.sure_rows == sum(planned.sure_rows for planned in expected)
            assert repr(list(run.part(1, 3))) == repr(expected[1:3])
    cut = data.draw(st.integers(0, 5))
    # As the pages of an answer cut them: parts may be empty.
    parts = [
        part
        for run in of_columns
        for part in (
            [run.part(0, cut), run.part(cut, len(run))] if isinstance(run, PlannedColumns) else [run]
        )
    ]
    pages = [ScanPage(runs, (), metadata, scope.stats_ids) for runs in (parts, in_lists)]
    for run in of_columns:
        if isinstance(run, PlannedColumns):
            event(f"some are alike: {2 * len(set(run.files.alike)) <= len(run)}")
    written, one_by_one = (json.loads(scan_tasks_json(page)) for page in pages)
    assert written == one_by_one

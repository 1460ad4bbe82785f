"""Whether a staged copy of a table's metadata says the same as the table, at other paths.

What Iceberg before 1.12 gets wrong, lengths of manifests in manifest lists (apache/iceberg 13719), is mended in a
second list of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

from app.engine.model.files.delete_files import is_deletion_vector
from app.engine.model.files.manifests import DataFile, FileContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.fileio.files import FileIO
from app.formats.bounds import MAX_FILE_BYTES, read_bounded
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.lists import read_manifest_list, write_manifest_list
from app.formats.metadata.files import MetadataFiles

MOST_FLAWS: Final = 20
"""So many are said; one is enough not to use the copy."""


@dataclass(frozen=True, slots=True)
class PathChange:
    """One prefix of locations that becomes another one, without a slash at the end."""

    source: str
    target: str

    def moved(self, location: str) -> str:
        """Return where a file will be; one that is not below the source stays where it is."""
        below = location.startswith(f"{self.source}/")
        return self.target + location[len(self.source) :] if below or location == self.source else location


@dataclass(frozen=True, slots=True)
class StagedCopy:
    """What was found in a staged copy."""

    file_list: Location
    """Lines of `from,to`: what has to be copied. The one to use: that of Spark, or one of our own."""
    files: int
    """How many it has."""
    mended: int
    """How many manifest lists had old lengths of manifests, and were written anew."""
    flaws: tuple[str, ...]
    """What is wrong all the same, as sentences: the copy must not be used then."""


def check_copy(
    files: FileIO,
    change: PathChange,
    original: Location,
    file_list: Location,
    copied: Sequence[Location] = (),
) -> StagedCopy:
    """Compare a staged copy with the table that it is one of, and mend lengths of manifests.

    Args:
        files: reads both, and writes what is mended.
        change: which prefix has become which.
        original: the table's metadata file.
        file_list: what Spark has written.
        copied: lists of earlier copies to the same place, whose files are all there. Files of the table that they
            have are not listed again; what is staged is, because it was written anew.

    Raises:
        FileMissing, FilesUnavailable, InvalidLocation, InvalidMetadata: a file of the table or the list cannot be read.
    """
    earlier = {pair for each in copied for pair in _plan(files, each).items()}
    check = _Check(files, change, _plan(files, file_list))
    check.metadata(original)
    pairs = [
        (target, source)
        for target, source in check.plan.items()
        if change.moved(source) != target or (target, source) not in earlier
    ]
    if (check.mended or copied) and not check.flaws:
        lines = "".join(f"{source},{target}\n" for target, source in pairs)
        file_list = Location(f"{file_list}-{'since' if copied else 'mended'}")
        files.write_new(file_list, lines.encode())
    return StagedCopy(file_list, len(pairs), check.mended, tuple(check.flaws[:MOST_FLAWS]))


def _plan(files: FileIO, file_list: Location) -> dict[str, str]:
    """Return from where each file is copied, by where to.

    A line that has more commas is left out: then the file is found missing.
    """
    text = read_bounded(files, file_list, MAX_FILE_BYTES).decode()
    pairs = [line.split(",") for line in text.splitlines()]
    return {pair[1]: pair[0] for pair in pairs if len(pair) == len(("from", "to"))}


class _Check:
    """One comparison, and what it has found so far."""

    def __init__(self, files: FileIO, change: PathChange, plan: dict[str, str]) -> None:
        self._files, self._change = files, change
        self.plan = plan
        self.flaws: list[str] = []
        self.mended = 0
        self._seen: set[str] = set()
        """Manifests that were compared: many lists have the same ones."""

    def metadata(self, original: Location) -> None:
        """Compare the current metadata file, and all that its snapshots name."""
        documents = MetadataFiles(0, 0)
        before = documents.read_table(self._files, original)
        staged = self._staged(original)
        if staged is None:
            return
        after = documents.read_table(self._files, staged)
        for name, expected, found in _facts(self._change, before, after):
            if expected != found:
                self.flaws.append(f"{name} is {found}, and {expected} is due")
        for statistics in before.statistics:
            self._copied(statistics.statistics_path)
        for of_partitions in before.partition_statistics:
            self._copied(of_partitions.statistics_path)
        copies = after.snapshots_by_id
        for snapshot in before.snapshots:
            copy = copies.get(snapshot.snapshot_id)
            if copy is not None and snapshot.manifest_list is not None:
                self._list(before, snapshot, snapshot.manifest_list)

    def _list(self, metadata: TableMetadata, snapshot: Snapshot, original: Location) -> None:
        staged = self._staged(original)
        if staged is None:
            return
        before, after = self._manifests(original), self._manifests(staged)
        if len(before) != len(after):
            self.flaws.append(f"{staged} has {len(after)} manifests, and {len(before)} are due")
            return
        sound = []
        for one, other in zip(before, after, strict=True):
            copy = self._staged(one.manifest_path)
            found = None if copy is None else self._files.find_file(copy)
            if copy is None or found is None:
                self.flaws.append(f"the copy of {one.manifest_path} is not there")
                return
            moved = Location(self._change.moved(one.manifest_path))
            sound.append(replace(other, manifest_length=found.size_bytes))
            if replace(one, manifest_path=moved, manifest_length=0) != replace(other, manifest_length=0):
                self.flaws.append(f"{staged} says something else of {moved} than {original} did")
            if one.manifest_path not in self._seen:
                self._seen.add(one.manifest_path)
                self._manifest(one, replace(sound[-1], manifest_path=copy))
        if sound != after:
            self._mend(metadata, snapshot, staged, sound)

    def _mend(
        self, metadata: TableMetadata, snapshot: Snapshot, staged: Location, sound: list[ManifestFile]
    ) -> None:
        """Write a manifest list with the right lengths, beside the one that has others."""
        location = Location(f"{staged.removesuffix('.avro')}-mended.avro")
        content = write_manifest_list(
            sound,
            format_version=metadata.format_version,
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_snapshot_id,
            sequence_number=snapshot.sequence,
            first_row_id=snapshot.first_row_id,
        ).content
        self._files.write_new(location, content)
        self.plan[self._change.moved(snapshot.manifest_list or "")] = location
        self.mended += 1

    def _manifest(self, original: ManifestFile, staged: ManifestFile) -> None:
        before, after = self._live(original), self._live(staged)
        if before.keys() != after.keys():
            self.flaws.append(f"{staged.manifest_path} has other files than {original.manifest_path}")
            return
        for key, (entry, path) in before.items():
            copy, _ = after[key]
            source = self._copied(path)
            if source is None:
                continue
            size = entry.file.file_size_in_bytes
            if source != path:  # A delete file that was written anew.
                found = self._files.find_file(Location(source))
                size = -1 if found is None else found.size_bytes
            moved = replace(entry, file=_moved(entry.file, self._change, size))
            changed = _differences(moved, replace(copy, file=_without_paths(copy.file)))
            if changed:
                self.flaws.append(
                    f"{staged.manifest_path} has another {' and '.join(changed)} of {path} than before"
                )

    def _live(self, manifest: ManifestFile) -> dict[tuple[str, int | None], tuple[ManifestEntry, str]]:
        content = read_bounded(self._files, manifest.manifest_path, MAX_FILE_BYTES)
        entries = (entry for entry in ManifestColumns(manifest, content) if entry.is_live)
        return {
            (self._change.moved(entry.file.file_path), entry.file.content_offset): (
                entry,
                entry.file.file_path,
            )
            for entry in entries
        }

    def _manifests(self, location: Location) -> list[ManifestFile]:
        return list(read_manifest_list(read_bounded(self._files, location, MAX_FILE_BYTES), location).values)

    def _copied(self, location: str) -> str | None:
        """Return from where a file is copied, where it must be."""
        source = self.plan.get(self._change.moved(location))
        if source is None:
            self.flaws.append(f"{location} is not in the list of files to copy")
        return source

    def _staged(self, original: str) -> Location | None:
        source = self._copied(original)
        if source == original:
            self.flaws.append(f"{original} is to be copied as it is, with its old paths")
        return None if source is None or source == original else Location(source)


def _facts(
    change: PathChange, before: TableMetadata, after: TableMetadata
) -> Iterator[tuple[str, object, object]]:
    """Yield what a metadata file must say, and what it says."""
    yield "table-uuid", before.uuid, after.uuid
    yield "location", change.moved(before.location), after.location
    yield "current-snapshot-id", before.current_snapshot_id, after.current_snapshot_id
    yield "next-row-id", before.next_row_id, after.next_row_id
    yield "refs", before.snapshot_refs, after.snapshot_refs
    yield "schemas", before.schemas, after.schemas
    yield "partition-specs", before.partition_specs, after.partition_specs
    yield "snapshots", _lists(before, change.moved), _lists(after, str)


def _lists(metadata: TableMetadata, moved: Callable[[str], str]) -> dict[int, str]:
    return {item.snapshot_id: moved(item.manifest_list or "") for item in metadata.snapshots}


def _moved(file: DataFile, change: PathChange, size: int) -> DataFile:
    referenced = file.referenced_data_file
    return replace(
        _without_paths(file),
        file_path=Location(change.moved(file.file_path)),
        file_size_in_bytes=size,
        referenced_data_file=None if referenced is None else Location(change.moved(referenced)),
    )


def _without_paths(file: DataFile) -> DataFile:
    """Return a file without what changes where position deletes are written anew."""
    if file.content is FileContent.POSITION_DELETES and not is_deletion_vector(file):
        return replace(file, lower_bounds=None, upper_bounds=None, column_sizes=None, split_offsets=None)
    return file


def _differences(due: ManifestEntry, found: ManifestEntry) -> list[str]:
    """Return in which fields two entries differ; NaN equals itself."""
    names = [field.name for field in fields(ManifestEntry) if field.name != "file"]
    pairs = [(name, getattr(due, name), getattr(found, name)) for name in names]
    of_file = [field.name for field in fields(DataFile)]
    pairs += [(name, getattr(due.file, name), getattr(found.file, name)) for name in of_file]
    return [name.replace("_", "-") for name, one, other in pairs if one != other and repr(one) != repr(other)]

"""Dangling deletes: delete files that can apply to no live data file any more."""

from __future__ import annotations

from collections.abc import Iterable

from app.engine.model.files.delete_files import referenced_path
from app.engine.model.files.entry_filters import EntryFacts
from app.engine.model.files.manifests import FileContent, ManifestEntry, PartitionKey, partition_key
from app.engine.model.ids import Location, SpecId
from app.engine.model.partition_spec import PartitionSpec, unpartitioned_specs


class LiveAges:
    """How old the live data files are that some delete files may apply to.

    Only what surely holds is used: sequence numbers, partitions, and the path of a delete file that is about one data
    file. Bounds and counts are not asked.
    """

    def __init__(self, deletes: Iterable[ManifestEntry], specs: Iterable[PartitionSpec]) -> None:
        """Prepare for some delete files; the specs are the table's."""
        self._unpartitioned = unpartitioned_specs(specs)
        # Of the paths of data files, which are many, only those are kept that are asked for.
        self._oldest_of_path: dict[Location, int | None] = {}
        for entry in deletes:
            path = referenced_path(entry.file)
            if path is not None:
                self._oldest_of_path[path] = None
        self._oldest_in: dict[PartitionKey, int] = {}
        self._oldest: int | None = None

    def note(self, spec_id: SpecId, file: EntryFacts) -> None:
        """Note a live data file of a spec."""
        age = file.data_sequence_number or 0
        place = partition_key(spec_id, file.partition)
        self._oldest_in[place] = _older(self._oldest_in.get(place), age)
        self._oldest = _older(self._oldest, age)
        if file.path in self._oldest_of_path:
            self._oldest_of_path[file.path] = _older(self._oldest_of_path[file.path], age)

    def may_apply(self, delete: ManifestEntry) -> bool:
        """Return whether a delete file may apply to one of the data files that were noted.

        Spec: #scan-planning
        """
        file = delete.file
        path = referenced_path(file)
        if path is not None:
            oldest = self._oldest_of_path[path]
        elif file.content is FileContent.EQUALITY_DELETES and file.spec_id in self._unpartitioned:
            oldest = self._oldest
        else:
            oldest = self._oldest_in.get(file.partition_key)
        return may_apply_at_age(file.content, delete.data_sequence_number or 0, oldest)


def may_apply_at_age(content: FileContent, age: int, oldest: int | None) -> bool:
    """Return whether a delete file may apply to the oldest of some data files, by age.

    If not, it applies to none of them.

    Args:
        content: what the delete file holds; deletion vectors are of positions.
        age: the delete file's data sequence number.
        oldest: that of the oldest data file; None if there is none.

    Spec: #scan-planning
    """
    if oldest is None:
        return False
    return oldest < age if content is FileContent.EQUALITY_DELETES else oldest <= age


def _older(age: int | None, other: int) -> int:
    return other if age is None or other < age else age

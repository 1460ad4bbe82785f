"""A store that fails where a test says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from app.engine.model.ids import Location
from app.errors import FilesUnavailable
from app.fileio.files import FileIO, ListedFile


@dataclass(eq=False)
class FailingFiles:
    """Another store, whose files can be made unreadable and whose patience for deletions can end."""

    files: FileIO
    unreadable: set[str] = field(default_factory=set)
    undeletable: set[str] = field(default_factory=set)
    deleted: list[str] = field(default_factory=list)

    def read(self, location: Location) -> bytes:
        if location in self.unreadable:
            raise FilesUnavailable(f"Cannot read {location}: the store does not answer")
        return self.files.read(location)

    def write_new(self, location: Location, content: bytes) -> None:
        self.files.write_new(location, content)

    def delete(self, location: Location) -> None:
        if location in self.undeletable:
            raise FilesUnavailable(f"Cannot delete {location}: the store does not answer")
        self.files.delete(location)
        self.deleted.append(location)

    def delete_empty_folder(self, location: Location) -> bool:
        return self.files.delete_empty_folder(location)

    def exists(self, location: Location) -> bool:
        return self.files.exists(location)

    def find_file(self, location: Location) -> ListedFile | None:
        return self.files.find_file(location)

    def list_files(self, prefix: Location) -> Iterator[ListedFile]:
        return self.files.list_files(prefix)

"""A store that counts what it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from app.engine.model.ids import Location
from app.fileio.bounded_reads import read_at_most
from app.fileio.files import FileIO, ListedFile
from app.fileio.tails import Tail, read_tail


@dataclass(eq=False)
class CountingFiles:
    """Another store, with how many bytes were read of each of its files, and which were looked for."""

    files: FileIO
    read_bytes: Counter[str] = field(default_factory=Counter)
    looked_for: list[str] = field(default_factory=list)

    def forget(self) -> None:
        """Count from nothing again."""
        self.read_bytes.clear()
        self.looked_for.clear()

    def read(self, location: Location) -> bytes:
        content = self.files.read(location)
        self.read_bytes[location] += len(content)
        return content

    def read_at_most(self, location: Location, max_bytes: int) -> bytes | None:
        content = read_at_most(self.files, location, max_bytes)
        self.read_bytes[location] += len(content or b"")
        return content

    def read_tail(self, location: Location, most_bytes: int) -> Tail:
        tail = read_tail(self.files, location, most_bytes)
        self.read_bytes[location] += len(tail.content)
        return tail

    def write_new(self, location: Location, content: bytes) -> None:
        self.files.write_new(location, content)

    def delete(self, location: Location) -> None:
        self.files.delete(location)

    def delete_empty_folder(self, location: Location) -> bool:
        return self.files.delete_empty_folder(location)

    def exists(self, location: Location) -> bool:
        self.looked_for.append(location)
        return self.files.exists(location)

    def find_file(self, location: Location) -> ListedFile | None:
        return self.files.find_file(location)

    def list_files(self, prefix: Location) -> Iterator[ListedFile]:
        return self.files.list_files(prefix)

"""A source without a catalog: a folder of metadata files, or a tree of such folders."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.engine.chains.tables import candidates_of, newest_of
from app.engine.chains.verdicts import FoundTable, FoundView, Verdict
from app.engine.chains.views import newest_view
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location
from app.errors import IcetowerError
from app.fileio.files import FileIO
from app.fileio.links import real_location
from app.fileio.locations import is_inside
from app.formats.bounds import MAX_FILE_BYTES, check_json, read_bounded, unpack
from app.formats.metadata.chain_facts import chain_facts, place_text
from app.formats.metadata.files import MetadataFiles
from app.formats.metadata.names import is_metadata_file
from app.formats.metadata.version_names import HINT
from app.moving.sources import Entry, EntryKind, SourceFailed

_METADATA = re.compile(r"/metadata/([^/]+\.metadata\.json(?:\.gz)?)\Z")
_LONGEST_HINT: Final = 1_000
_FILE_SYSTEM_NAME = re.compile(r"v(\d{1,9})(?:\.gz)?\.metadata\.json(?:\.gz)?", re.ASCII)
_NUMBERED_NAME = re.compile(r"(\d{1,9})-", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Folder:
    """The metadata files of one table or view."""

    place: str
    names: tuple[str, ...]
    has_hint: bool

    def location(self, name: str) -> Location:
        """Return where a file of it is."""
        return Location(f"{self.place}/metadata/{name}")


class FolderSource:
    """Tables that are found by their metadata files.

    A folder with some is a table, and the folders around it are its namespace.
    """

    drop_obstacle = None
    has_entries = False
    shows_default_locations = False
    warnings = ("No catalog was asked: writers that know a table by its folder can go on unseen",)

    def __init__(self, root: str, files: FileIO, within: Namespace | None = None) -> None:
        """Look through a folder.

        Args:
            root: a table's own folder, or one around those of several.
            files: how it is read.
            within: the namespace of what lies directly in the root, and of the root itself if it is a table.

        Raises:
            SourceFailed: the folder cannot be read.
        """
        self.name = root.rstrip("/")
        self._files = files
        self._metadata = MetadataFiles(0, 0)
        self._within = within
        self._folders = self._found()
        self._by_namespace: dict[Namespace, list[TableIdentifier]] = defaultdict(list)
        for identifier in sorted(self._folders):
            self._by_namespace[identifier.namespace].append(identifier)
        self._kinds: dict[TableIdentifier, EntryKind] = {}

    def namespaces(self) -> Iterator[Namespace]:
        if not self._folders:
            raise SourceFailed(f"There are no metadata files in {self.name}")
        yield from self._by_namespace

    def properties(self, namespace: Namespace) -> Mapping[str, str]:  # noqa: ARG002 - folders have none
        return {}

    def entries(self, namespace: Namespace) -> Iterator[Entry]:
        for identifier in self._by_namespace.get(namespace, ()):
            yield Entry(identifier, self._kind(identifier))

    def find_location(self, entry: Entry) -> str | None:
        if entry.identifier not in self._folders:
            return None
        # Listed anew: it may have moved on since.
        folder = self._found(entry.identifier).get(entry.identifier)
        return None if folder is None else folder.location(self._newest(folder))

    def find_uuid(self, entry: Entry) -> str | None:
        folder = self._folders.get(entry.identifier)
        try:
            found = (
                None if folder is None else self._read(folder, self._newest(folder)).get(f"{entry.kind}-uuid")
            )
        except SourceFailed:
            return None  # The target will say what is wrong with the file.
        return None if found is None else str(found)

    def identity(self, entry: Entry, location: str) -> str | None:  # noqa: ARG002 - there are no entries
        return None

    def drop(self, entry: Entry, location: str) -> str | None:  # noqa: ARG002 - there is no entry to drop
        return location

    def mark(self, entry: Entry, properties: Mapping[str, str]) -> bool:  # noqa: ARG002 - a property is a metadata file
        return False

    def _found(self, only: TableIdentifier | None = None) -> dict[TableIdentifier, _Folder]:
        root = self.name if only is None else f"{self._folders[only].place}/metadata"
        names: dict[str, list[str]] = defaultdict(list)
        hints = set()
        try:
            for file in self._files.list_files(Location(root)):
                if match := _METADATA.search(file.location):
                    names[file.location[: match.start()]].append(match[1])
                elif file.location.endswith(f"/metadata/{HINT}"):
                    hints.add(file.location.removesuffix(f"/metadata/{HINT}"))
        except IcetowerError as error:
            raise SourceFailed(f"{root} cannot be listed: {error}") from error
        return {
            self._identifier(place): _Folder(place, tuple(sorted(found)), place in hints)
            for place, found in names.items()
        }

    def _identifier(self, place: str) -> TableIdentifier:
        inside = place[len(self.name) :].removeprefix("/")
        # Empty steps stay, as S3 may have them: without, `a//t` would take the place of `a/t`. The server refuses them.
        *outer, name = inside.split("/") if inside else [self.name.rsplit("/", 1)[-1]]
        within = [] if self._within is None else [*self._within.levels]
        if not within and not outer:
            raise SourceFailed(f"{place} has no namespace: name one with --namespace")
        return TableIdentifier(Namespace((*within, *outer)), name)

    def _kind(self, identifier: TableIdentifier) -> EntryKind:
        if identifier not in self._kinds:
            self._kinds[identifier] = "view" if self._is_view(self._folders[identifier]) else "table"
        return self._kinds[identifier]

    def _is_view(self, folder: _Folder) -> bool:
        for name in reversed(folder.names):
            try:
                return "view-uuid" in self._read(folder, name)
            except SourceFailed:
                continue  # It has vanished; else the server will say what is wrong with it.
        return False

    # Which file is the newest

    def _newest(self, folder: _Folder) -> str:
        """Return the file that is the table's state; raises `SourceFailed` if that cannot be known."""
        if len(folder.names) == 1:
            return folder.names[0]
        versions = {name: match for name in folder.names if (match := _FILE_SYSTEM_NAME.fullmatch(name))}
        if len(versions) == len(folder.names):
            by_number: dict[int, list[str]] = defaultdict(list)
            for name, match in versions.items():
                by_number[int(match[1])].append(name)
            return self._newest_version(folder, by_number)
        return self._end_of_chain(folder)

    def _newest_version(self, folder: _Folder, by_number: Mapping[int, list[str]]) -> str:
        """Return the current version of a file-system table.

        That is the one of the hint, or a later one if none between them is missing.
        """
        newest = max(by_number)
        hint = self._hint(folder)
        current = hint if hint is not None else newest
        while current + 1 in by_number:
            current += 1
        if current != newest or len(by_number[current]) != 1:
            candidates = sorted({*by_number.get(current, ()), *by_number[newest]})
            raise _ambiguous(folder, candidates)
        return by_number[current][0]

    def _hint(self, folder: _Folder) -> int | None:
        if not folder.has_hint:
            return None
        try:
            text = read_bounded(self._files, folder.location(HINT), _LONGEST_HINT).decode("utf-8", "replace")
        except IcetowerError:
            return None
        first = text.splitlines()[0].strip() if text else ""
        return int(first) if first.isascii() and first.isdigit() else None

    def _end_of_chain(self, folder: _Folder) -> str:
        """Return the newest file by the rules of a rebuild; only what is certain counts."""
        facts = self._unnamed(folder)
        tables = [each for each in facts if isinstance(each, FoundTable)]
        views = [each for each in facts if isinstance(each, FoundView)]
        named = {place for each in tables for place in each.log}
        ends = [each.location for each in facts if each.place not in named]
        if len({each.uuid for each in facts if each.uuid}) > 1 or (tables and views):
            raise _ambiguous(folder, ends)
        verdict = newest_view(views) if views else self._newest_table(tables)
        if verdict.newest is None or not verdict.is_certain:
            likely = () if verdict.newest is None else (verdict.newest.location,)
            raise _ambiguous(folder, [*likely, *verdict.others] or ends)
        return _name_of(verdict.newest.location)

    def _unnamed(self, folder: _Folder) -> list[FoundTable | FoundView]:
        """Read files, highest numbers first, until each of those that are left is named by one."""
        found: list[FoundTable | FoundView] = []
        named: set[str] = set()
        unread = {place_text(folder.location(name)) for name in folder.names}
        for name in sorted(folder.names, key=_number, reverse=True):
            if unread <= named:
                break
            location = folder.location(name)
            unread.discard(place_text(location))
            try:
                facts = chain_facts(location, self._metadata.read_either(self._files, location))
            except IcetowerError as error:
                raise SourceFailed(f"{location} cannot be read: {error}") from error
            found.append(facts)
            named.update(facts.log if isinstance(facts, FoundTable) else ())
        return found

    def _newest_table(self, files: list[FoundTable]) -> Verdict[FoundTable]:
        candidates = candidates_of(files)
        lacking: set[str] = set()
        if len(candidates.standing) > 1:
            lacking = {head.place for head in candidates.standing if not self._has_list(head)}
        return newest_of(candidates, lacking)

    def _has_list(self, head: FoundTable) -> bool:
        try:
            return head.manifest_list is None or self._files.exists(head.manifest_list)
        except IcetowerError:
            return True  # It cannot be looked at from here.

    def _read(self, folder: _Folder, name: str) -> dict[str, Any]:
        location = folder.location(name)
        try:
            content = read_bounded(self._files, location, MAX_FILE_BYTES)
            if content[:2] == b"\x1f\x8b":
                content = unpack(content, MAX_FILE_BYTES)
            check_json(content, MAX_FILE_BYTES)
            found = json.loads(content)
        except (IcetowerError, ValueError, RecursionError) as error:
            raise SourceFailed(f"{location} cannot be read: {error}") from error
        if not isinstance(found, dict):
            raise SourceFailed(f"{location} is not a metadata file")
        return found


def spelled_by_tables(folder: str, place: str, files: FileIO) -> str:
    """Return a local folder as its tables spell it: with the links in its name, or without.

    By their locations metadata files find each other, and servers compare them with those of warehouses.

    Args:
        folder: as a person has typed it.
        place: where it is, without links; a location stays as it is.
        files: how it is read.
    """
    typed = f"file://{Path(folder).absolute()}"
    if typed == place or real_location(typed) != place:
        return place
    try:
        found = next(file for file in files.list_files(Location(place)) if is_metadata_file(file.location))
        metadata = MetadataFiles(0, 0).read_either(files, found.location)
    except (IcetowerError, StopIteration):
        return place
    return typed if is_inside(metadata.location, typed) else place


def _name_of(location: str) -> str:
    return location.rpartition("/")[2]


def _number(name: str) -> int:
    match = _NUMBERED_NAME.match(name) or _FILE_SYSTEM_NAME.fullmatch(name)
    return int(match[1]) if match else -1


def _ambiguous(folder: _Folder, candidates: Sequence[str]) -> SourceFailed:
    shown = ", ".join(sorted(map(_name_of, candidates))[:10])
    return SourceFailed(
        f"Which metadata file of {folder.place} is the current one cannot be known: it may be {shown}. "
        "Register the right one by name"
    )

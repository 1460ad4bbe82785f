"""Searching a warehouse: its metadata files, and which of them is each table's newest.

Storage is listed once, and no time of a file counts. In each folder the highest number is read first: what its log
names need not be read, so that a healthy table costs one file and one look at its manifest list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

from app.catalog.context.catalog import Catalog
from app.catalog.context.places.locations import is_allowed, roots_of
from app.catalog.rebuild.found_files import MetadataClaims, Unreadable, folder_of, read_facts
from app.catalog.rebuild.known_pointers import KnownPointer
from app.database.pointers.pointer import PointerKind
from app.engine.chains.tables import Since, candidates_of, landed_beside, newest_of
from app.engine.chains.verdicts import FoundTable, FoundView, Verdict
from app.engine.chains.views import newest_view, versions_beside
from app.engine.model.ids import Location
from app.fileio.locations import is_inside
from app.formats.metadata.chain_facts import place_text
from app.formats.metadata.names import is_metadata_file, number_of

WORKERS = 16
"""How many folders are read side by side: stores answer slowly, and each answer is short."""
_MOVED = (
    "its metadata files lie elsewhere than they say: copied or moved files must be rewritten first, as by Spark's "
    "rewrite_table_path"
)

AnyVerdict = Verdict[FoundTable] | Verdict[FoundView]
Judged = tuple[KnownPointer | None, AnyVerdict]


@dataclass(frozen=True, slots=True)
class FoundName:
    """A table or view that was found, with one verdict for each pointer known of it."""

    kind: PointerKind
    uuid: str
    home: str
    read: tuple[Location, ...]
    """The files that were read for it."""
    judged: tuple[Judged, ...]
    doubt: Unreadable | None = None
    """A file in its folder that cannot be read."""


@dataclass
class SearchResult:
    """What a search has found."""

    names: list[FoundName] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    folders: int = 0
    files: int = 0


@dataclass
class _Folder:
    """The metadata files of one folder."""

    known: Mapping[str, Sequence[KnownPointer]]
    unread: dict[str, Location] = field(default_factory=dict)
    """By place."""
    facts: list[MetadataClaims] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    named: set[str] = field(default_factory=set)

    def read(self, catalog: Catalog, place: str) -> None:
        """Read one file, if it is here and unread."""
        location = self.unread.pop(place, None)
        facts = None if location is None else read_facts(catalog, location)
        if isinstance(facts, Unreadable):
            self.unreadable.append(facts)
        elif facts is not None:
            self.facts.append(facts)
            if isinstance(facts.found, FoundTable):
                self.named.update(facts.found.log)


def search(catalog: Catalog, known: Mapping[str, Sequence[KnownPointer]]) -> SearchResult:
    """Return the tables and views of a warehouse with the newest metadata file of each.

    Args:
        catalog: the warehouse.
        known: pointers by `MetadataClaims.key`, from which to go on.

    Raises:
        FilesUnavailable: the store does not answer: nothing is decided on half of the files.
    """
    catalog.permit("rebuild_catalog")
    result, by_key = SearchResult(), defaultdict[tuple[PointerKind, str], list[FoundName]](list)
    folders = _list_folders(catalog)
    result.folders, result.files = len(folders), sum(map(len, folders.values()))
    with ThreadPoolExecutor(WORKERS, "rebuild") as pool:
        look = partial(_look_into, catalog, known)
        for found, unreadable in pool.map(look, folders.values()):
            result.unreadable += unreadable
            for name in found:
                by_key[name.kind, name.uuid or folder_of(place_text(name.read[0]))].append(name)
        join = partial(_joined, catalog, known)
        for names in pool.map(join, by_key.values()):
            result.names += names
    return result


def _list_folders(catalog: Catalog) -> dict[str, list[Location]]:
    """Return the metadata files below the roots of the warehouse, by folder."""
    folders: defaultdict[str, list[Location]] = defaultdict(list)
    roots = [catalog.warehouse.root_location]
    for root in roots_of(catalog)[1:]:
        if not any(is_inside(root, other) for other in roots):
            roots = [other for other in roots if not is_inside(other, root)] + [root]
    for root in roots:
        for file in catalog.files.list_files(Location(root)):
            if is_metadata_file(file.location):
                folders[file.location.rpartition("/")[0]].append(file.location)
    return folders


def _look_into(
    catalog: Catalog, known: Mapping[str, Sequence[KnownPointer]], locations: Sequence[Location]
) -> tuple[list[FoundName], list[Unreadable]]:
    """Return what the metadata files of one folder belong to."""
    folder = _Folder(known, {place_text(location): location for location in locations})
    for place in sorted(folder.unread, key=_likeliest_first):
        if place not in folder.named:
            folder.read(catalog, place)
    _read_links(catalog, folder)
    # What a log names was readable once: it is old, whatever became of it.
    unreadable = [each for each in folder.unreadable if place_text(each.location) not in folder.named]
    return _judge_all(catalog, known, folder.facts, unreadable), unreadable


def _likeliest_first(place: str) -> tuple[int, str]:
    number = number_of(place)
    return (-1 if number is None else -number - 2, place)


def _read_links(catalog: Catalog, folder: _Folder) -> None:
    """Read further files where those that no log names do not yet say enough.

    Where several are left of one table, the files they were built on; and the way back to a known pointer.
    """
    groups: defaultdict[str, list[FoundTable]] = defaultdict(list)
    for facts in folder.facts:
        if isinstance(facts.found, FoundTable):
            groups[facts.key].append(facts.found)
    for key, files in groups.items():
        if len(files) > 1:
            for file in files:
                if file.parent is not None:
                    folder.read(catalog, file.parent)
        for pointer in folder.known.get(key, ()):
            place, ends = place_text(pointer.location), [file.log[0] for file in files if file.log]
            while place not in folder.named and ends:
                read_before = len(folder.facts)
                folder.read(catalog, ends.pop())
                new = [facts.found for facts in folder.facts[read_before:]]
                ends += [found.log[0] for found in new if isinstance(found, FoundTable) and found.log]
            folder.read(catalog, place)


def _judge_all(
    catalog: Catalog,
    known: Mapping[str, Sequence[KnownPointer]],
    facts: Sequence[MetadataClaims],
    unreadable: Sequence[Unreadable],
) -> list[FoundName]:
    groups: defaultdict[tuple[PointerKind, str], list[MetadataClaims]] = defaultdict(list)
    for each in facts:
        groups[each.kind, each.key].append(each)
    _give_nameless_files(groups)
    found = []
    for (kind, key), files in groups.items():
        folder = files[0].folder
        pointers = known.get(key) or known.get(folder, ())
        judged = _judge(catalog, kind, files, pointers)
        if unreadable:
            judged = tuple((pointer, _in_doubt(verdict, unreadable[0])) for pointer, verdict in judged)
        last = max(files, key=lambda file: (file.is_home, -_likeliest_first(file.place)[0]))
        read = tuple(file.found.location for file in files)
        doubt = next(iter(unreadable), None)
        found.append(FoundName(kind, last.found.uuid, last.home, read, judged, doubt))
    return found


def _give_nameless_files(groups: dict[tuple[PointerKind, str], list[MetadataClaims]]) -> None:
    """Give files without a uuid to the table in their folder that got one since."""
    for kind, key in [each for each, files in groups.items() if not files[0].found.uuid]:
        home = groups[kind, key][0].home
        heirs = [
            files
            for files in groups.values()
            if files[0].found.uuid and place_text(files[0].home) == place_text(home)
        ]
        if len(heirs) == 1:
            heirs[0] += groups.pop((kind, key))


def _judge(
    catalog: Catalog, kind: PointerKind, files: Sequence[MetadataClaims], pointers: Sequence[KnownPointer]
) -> tuple[Judged, ...]:
    """Return the newest of one table's or view's files, for each pointer that is known of it."""
    places = {place_text(pointer.location) for pointer in pointers}
    # A file that a pointer names may lie anywhere: it was registered.
    at_home = [file for file in files if file.is_home or file.place in places]
    if not at_home:
        return ((None, Verdict(None, reason=_MOVED, others=tuple(file.found.location for file in files))),)
    if kind is PointerKind.VIEW:
        views = [file.found for file in at_home if isinstance(file.found, FoundView)]
        return tuple((pointer, _newest_view(views, pointer.since)) for pointer in pointers) or (
            (None, newest_view(views)),
        )
    tables = [file.found for file in at_home if isinstance(file.found, FoundTable)]
    if not pointers:
        return ((None, _newest_table(catalog, tables, None)),)
    return tuple((pointer, _newest_table(catalog, tables, pointer.since)) for pointer in pointers)


def _newest_view(views: Sequence[FoundView], since: Since) -> Verdict[FoundView]:
    return replace(newest_view(views, since), beside=versions_beside(views, since))


def _newest_table(catalog: Catalog, files: Sequence[FoundTable], since: Since | None) -> Verdict[FoundTable]:
    candidates = candidates_of(files, since)
    lacking = {
        head.place
        for head in candidates.standing
        if head.manifest_list is not None
        and (since is None or head.place != since.place)
        and is_allowed(catalog, head.manifest_list)
        and not catalog.files.exists(head.manifest_list)
    }
    verdict = newest_of(candidates, lacking)
    if since is not None:
        verdict = replace(verdict, beside=landed_beside(files, since))
    # The logs are long, and no longer needed.
    return verdict if verdict.newest is None else replace(verdict, newest=replace(verdict.newest, log=()))


def _in_doubt(verdict: AnyVerdict, unreadable: Unreadable) -> AnyVerdict:
    if not verdict.is_certain:
        return verdict
    reason = (
        f"{unreadable.location} in the same folder cannot be read and may be younger: {unreadable.reason}"
    )
    return replace(verdict, reason=reason[:500])


def _joined(
    catalog: Catalog, known: Mapping[str, Sequence[KnownPointer]], names: Sequence[FoundName]
) -> Sequence[FoundName]:
    """Return one name for what was found of it in several folders, and its copies."""
    if len(names) == 1:
        return names
    facts = list[MetadataClaims]()
    unreadable = [name.doubt for name in names if name.doubt is not None]
    for location in (location for name in names for location in name.read):
        read = read_facts(catalog, location)
        if isinstance(read, MetadataClaims):
            facts.append(read)
    at_home = [
        name for name in names if any(each.is_home for each in facts if each.found.location in name.read)
    ]
    together = _judge_all(catalog, known, facts, unreadable)
    return [*together, *(name for name in names if name not in at_home)] if at_home else together

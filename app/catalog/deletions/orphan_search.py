"""Looking for orphans: what lies in a table's places, without what anything reaches."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import Owner, deletable
from app.catalog.context.places.locations import check_location, is_allowed
from app.catalog.context.places.table_places import own_folders
from app.catalog.context.server import Server
from app.catalog.context.threads.side_work import do_all_in
from app.catalog.deletions.reached_states import ReachedStates
from app.catalog.exports.forks import find_fork, fork_text
from app.database.connections.clock import earlier_now_ms
from app.database.pointers.pointer import Pointer
from app.engine.model.data_types.moments import moment_text
from app.engine.model.ids import Location
from app.engine.model.settings.properties import allows_deletes
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.orphans import NameRules, ReachedFiles, Stays, stays_by_age
from app.errors import InvalidLocation, OrphansRefused
from app.fileio.files import ListedFile
from app.fileio.locations import exact_folder_name, is_inside, loose_place_of

MOST_ORPHANS = 1_000_000
"""How many files one run marks at most: each takes about 400 bytes of memory until it is marked."""
DEFAULT_AGE_MS = 3 * 24 * 3_600_000
"""Source: remove_orphan_files of Iceberg's Java."""
LEAST_AGE_MS = 24 * 3_600_000
_WORKERS = 8


@dataclass(frozen=True, slots=True)
class OrphanWish:
    """Which orphans are looked for."""

    older_than_ms: int | None = None
    """Epoch milliseconds; None for three days ago."""
    location: str | None = None
    """A folder in the table's places; None for all of them."""
    file_list: Location | None = None
    """A file, or a folder of files, with a listing that the client made; None if the server lists."""
    grace_ms: int | None = None
    """How long the files stay after they were marked; None for the server's setting."""


@dataclass
class Orphans:
    """What was found."""

    pointer: Pointer
    older_than_ms: int
    places: list[str]
    """The folders that were searched."""
    files: dict[int, ListedFile] = field(default_factory=dict)
    """By hash of their path."""
    listed_files: int = 0
    reached_files: int = 0
    """How many the table reaches, now and earlier."""
    stays: Counter[Stays] = field(default_factory=Counter)
    is_complete: bool = True
    """False if there are more than one run marks."""

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files.values())


def path_hash(location: str) -> int:
    """Return a number for a file: equal for all spellings, and in every store."""
    return hash(loose_place_of(location)[1])


def search_orphans(catalog: Catalog, pointer: Pointer, metadata: TableMetadata, wish: OrphanWish) -> Orphans:
    """Return the files that lie in a table's places, are old enough, and that nothing reaches.

    What the table reaches is read first, then the files are listed. Only if some are left, all other tables of all
    warehouses are read: a healthy table costs nothing but itself.

    Raises:
        OrphansRefused: garbage collection is off, the time is too young, the files may be another table's, it is not
            known what a table reaches, or a path is reached under another scheme or authority.
        InvalidLocation: the location lies outside the table's places, or the list outside the warehouse.
        InvalidRequest: the list cannot be understood.
        FilesUnavailable, DatabaseUnavailable: safe to try again.
    """
    check_may_delete(catalog, pointer, metadata)
    if wish.file_list is not None:
        check_location(catalog, wish.file_list, "file list")
    owner = Owner.of(pointer.uuid, pointer.id, metadata)
    found = Orphans(pointer, _older_than_ms(catalog, wish), _places(catalog, own_folders(metadata), wish))
    reached = ReachedFiles(loose_place_of, found.places)
    states = ReachedStates(catalog, reached.add)
    states.add_table(pointer, metadata)
    found.reached_files = len(reached)
    _collect(found, _listed(catalog, found, wish), reached, NameRules(metadata))
    if wish.file_list is not None:
        _look_again(catalog, found)
    if found.files:
        _remove(found, reached_by_others(states, found))
        _remove_others(catalog, owner, found)
    return found


def check_may_delete(catalog: Catalog, pointer: Pointer, metadata: TableMetadata) -> None:
    """Check that files of a table are deleted at all.

    Raises:
        OrphansRefused: garbage collection is off, another table may share its files, or there are commits to it that
            the database does not know.
        FilesUnavailable, DatabaseUnavailable: safe to try again.
    """
    if not catalog.has_rows:
        raise OrphansRefused(
            f"Cannot look for orphans of {pointer.identifier}: it is a file-system table, and the server does not see "
            "what other writers put into its folder; use Spark's remove_orphan_files, or adopt the table first "
            "(icetower table adopt)"
        )
    if not allows_deletes(metadata.properties):
        raise OrphansRefused(
            f"Cannot look for orphans of {pointer.identifier}: gc.enabled is false, so its files may belong to others"
        )
    if catalog.server.pointers.may_share_files(pointer.uuid, pointer.id):
        raise OrphansRefused(
            f"Cannot look for orphans of {pointer.identifier}: another table may share its files: one has the same "
            "uuid, or this one has or had none"
        )
    fork = find_fork(catalog, pointer.uuid, pointer.id, pointer.metadata_location, metadata)
    if fork is not None:
        raise OrphansRefused(
            f"Cannot look for orphans of {pointer.identifier}: {fork_text(fork)}. If that commit does not count, "
            "unregister the table and register it again, a quarter of an hour after it or later"
        )


def reached_by_others(states: ReachedStates, found: Orphans) -> set[int]:
    """Return which of the files found something else reaches, or the table itself by now."""
    reached: set[int] = set()

    def note(location: Location) -> bool:
        number = path_hash(location)
        if number not in found.files:
            return False
        reached.add(number)
        return True

    states.note = note
    states.add_others()
    return reached


def files_now_ms(server: Server) -> int:
    """Return the time from which the ages of files are counted."""
    return earlier_now_ms(server.file_deletions.now_ms())


def _older_than_ms(catalog: Catalog, wish: OrphanWish) -> int:
    now_ms = files_now_ms(catalog.server)
    least_ms = catalog.rules.orphan_age_ms or LEAST_AGE_MS
    if wish.older_than_ms is None:
        return now_ms - max(DEFAULT_AGE_MS, least_ms)
    if wish.older_than_ms > now_ms - least_ms:
        raise OrphansRefused(
            f"Cannot look for orphans: older-than-ms {wish.older_than_ms} is less than {least_ms / 3_600_000:g} hours "
            f"ago: it is {moment_text(now_ms)} by the earlier of the clocks of the server and the database; "
            "writers may still be about to commit younger files (the setting orphan_age_hours)"
        )
    return wish.older_than_ms


def _places(catalog: Catalog, own: frozenset[str], wish: OrphanWish) -> list[str]:
    if wish.location is not None:
        if not any(is_inside(wish.location, place) for place in own):
            raise InvalidLocation(
                f"Invalid location {wish.location[:500]!r}: it is outside the table's places, which are "
                f"{' and '.join(sorted(own))}"
            )
        check_location(catalog, wish.location, "location")
        return [exact_folder_name(wish.location)]
    allowed = [place for place in sorted(own) if is_allowed(catalog, place)]
    return [
        place for place in allowed if not any(place != other and place.startswith(other) for other in allowed)
    ]


def _listed(catalog: Catalog, found: Orphans, wish: OrphanWish) -> Iterator[tuple[str, ListedFile]]:
    """Yield each file with its path below the place it lies in."""
    if wish.file_list is None:
        for place in found.places:
            for file in catalog.files.list_files(Location(place)):
                yield file.location[len(place) :], file
        return
    # Only here, for it imports pyarrow, which would double the memory of a server that needs none.
    from app.formats.file_lists import read_file_list

    paths = [loose_place_of(place) for place in found.places]
    for file in read_file_list(catalog.files, wish.file_list, catalog.server.manifest_cache.max_file_bytes):
        store, path = loose_place_of(file.location)
        for of_place, start in paths:
            if store == of_place and path.startswith(f"{start}/" if start else ""):
                yield path[len(start) :].lstrip("/"), file
                break


def _collect(
    found: Orphans, listed: Iterable[tuple[str, ListedFile]], reached: ReachedFiles, names: NameRules
) -> None:
    for relative, file in listed:
        found.listed_files += 1
        why = stays_by_age(file.modified_ms, found.older_than_ms) or names.stays(relative)
        if why is None and file.location in reached:
            why = Stays.REACHED
        if why is not None:
            found.stays[why] += 1
        elif len(found.files) < MOST_ORPHANS:
            found.files[path_hash(file.location)] = file
        else:
            found.is_complete = False
            return


def _look_again(catalog: Catalog, found: Orphans) -> None:
    """Take sizes and times from the store: a client's list may be old or wrong."""
    unseen = deque((number, file.location) for number, file in found.files.items())
    now: dict[int, ListedFile | None] = {}

    def look() -> None:
        try:
            while unseen:
                with suppress(IndexError):  # another thread has taken the last one
                    number, location = unseen.popleft()
                    if is_allowed(catalog, location):
                        now[number] = catalog.files.find_file(location)
        except BaseException:
            unseen.clear()
            raise

    with ThreadPoolExecutor(_WORKERS, "orphan-looks") as pool:
        do_all_in(pool, [look] * _WORKERS)
    there = [(number, file) for number in found.files if (file := now.get(number)) is not None]
    found.files = {}
    for number, file in there:
        why = stays_by_age(file.modified_ms, found.older_than_ms)
        if why is None:
            found.files[number] = file
        else:
            found.stays[why] += 1


def _remove(found: Orphans, reached: set[int]) -> None:
    for number in reached:
        del found.files[number]
    found.stays.update({Stays.REACHED: len(reached)} if reached else {})


def _remove_others(catalog: Catalog, owner: Owner, found: Orphans) -> None:
    """Leave out what may not be deleted on behalf of the table."""
    locations = [file.location for file in found.files.values()]
    going = set(map(path_hash, deletable(catalog, owner, locations)))
    if len(going) < len(found.files):
        found.stays[Stays.OF_OTHERS] = len(found.files) - len(going)
    found.files = {number: file for number, file in found.files.items() if number in going}

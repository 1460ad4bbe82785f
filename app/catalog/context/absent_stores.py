"""Absent stores: where no file at all is found, it is not known that one is gone."""

from __future__ import annotations

from app.catalog.context.catalog import Catalog
from app.catalog.context.places.file_names import EXPORTS, TRIES
from app.catalog.context.places.locations import roots_of
from app.engine.model.ids import Location
from app.errors import FilesUnavailable
from app.fileio.locations import is_inside


def check_store_is_there(catalog: Catalog, missing: str) -> None:
    """Check that the store is there in which a file was not found.

    A disk that is not mounted, and a bucket that is away, look like a store from which everything was deleted.

    Args:
        catalog: the warehouse of which the file is.
        missing: the file.

    Raises:
        FilesUnavailable: neither its folder nor a root of the warehouse around it has any file; says what to do.
    """
    _check(absence_of_store(catalog, missing))


def absence_of_store(catalog: Catalog, missing: str) -> str | None:
    """Say so if neither the folder of a missing file nor a root has any; None if one has.

    Raises:
        FilesUnavailable: the store does not answer.
    """
    roots = [root for root in roots_of(catalog) if is_inside(missing, root)]
    return _absence(catalog, missing, _folder_of(missing), *roots)


def check_table_is_there(catalog: Catalog, missing: str) -> None:
    """Check that a table is there whose current metadata file was not found.

    Raises:
        FilesUnavailable: `absence_of_table` says that it may not be; or the store does not answer.
    """
    _check(absence_of_table(catalog, missing))


def absence_of_table(catalog: Catalog, missing: str) -> str | None:
    """Say so if the folder of a missing metadata file has no file at all; None if it has.

    Files of others do not say so: a warehouse's storage settings may be those of another store for a while.

    Raises:
        FilesUnavailable: the store does not answer.
    """
    return _absence(catalog, missing, _folder_of(missing))


def _check(absence: str | None) -> None:
    if absence is not None:
        raise FilesUnavailable(
            f"{absence}. Bring it back, or let go what the catalog has there (`icetower table unregister --unread`, "
            "`icetower dropped purge`)"
        )


def _absence(catalog: Catalog, missing: str, *places: str) -> str | None:
    if any(_has_files(catalog, Location(place)) for place in places):
        return None
    return (
        f"It is not known whether {missing} is gone: nothing at all is found in {places[-1]}, as if its disk "
        "were not mounted, its bucket not there, or the storage settings those of another store"
    )


def _folder_of(location: str) -> str:
    return location.rpartition("/")[0]


def _has_files(catalog: Catalog, place: Location) -> bool:
    # Servers write also where a disk is not mounted: exports, and tries whether it can be written to.
    below = (file.location[len(place.rstrip("/")) :] for file in catalog.files.list_files(place))
    return any(f"/{EXPORTS}/" not in name and f"/{TRIES}" not in name for name in below)

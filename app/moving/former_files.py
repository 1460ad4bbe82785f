"""Former files: deleted, rewritten or rolled back, so that a table has them no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import TableIdentifier
from app.fileio.locations import loose_place_of

CLOCKS_DIFFER_MS: Final = 15 * 60_000
"""How much the clocks of a store and of a server may differ."""


@dataclass(frozen=True, slots=True)
class FormerFiles:
    """The files that snapshots of a table had, and that it has no more."""

    places: frozenset[tuple[str, str]] = frozenset()
    known_since_ms: int = 0
    """Snapshots from before have expired, and nothing says which files they had; 0 if none have."""

    def has(self, path: str) -> bool:
        """Say whether the table had a file for certain."""
        return loose_place_of(path) in self.places

    def may_have(self, written_ms: int) -> bool:
        """Say whether a file is so old that an expired snapshot may have had it."""
        return bool(self.known_since_ms) and written_ms < self.known_since_ms + CLOCKS_DIFFER_MS


def former_files(catalog: RemoteCatalog, identifier: TableIdentifier) -> FormerFiles:
    """Return what a table had in any of its snapshots, and is not in the newest one of main.

    Only a snapshot that does not just append lets files go; and lines of snapshots that main has left have some.
    """
    metadata = catalog.tables.load(identifier).metadata
    snapshots: dict[int, dict[str, Any]] = {
        item["snapshot-id"]: item for item in metadata.get("snapshots") or ()
    }
    parents = {key: item.get("parent-snapshot-id") for key, item in snapshots.items()}
    places: set[tuple[str, str]] = set()
    for key, item in snapshots.items():
        if parents[key] in snapshots and (item.get("summary") or {}).get("operation") != "append":
            changed = catalog.history.diff(identifier, str(parents[key]), str(key))["files"]
            places.update(
                loose_place_of(file["file-path"]) for file in changed if file["change"] == "removed"
            )
    main: int | None = ((metadata.get("refs") or {}).get("main") or {}).get("snapshot-id")
    on_main = set()
    while main in snapshots and main not in on_main:
        on_main.add(main)
        main = parents[main]
    for key in snapshots.keys() - on_main - set(parents.values()):
        places.update(
            loose_place_of(file["file-path"]) for file in catalog.history.files(identifier, str(key))
        )
    return FormerFiles(frozenset(places), _known_since_ms(metadata, snapshots))


def _known_since_ms(metadata: Mapping[str, Any], snapshots: Mapping[int, Mapping[str, Any]]) -> int:
    """Return the time of the first snapshot after all that have expired; 0 if none have.

    Not that of the oldest one: a tag or a rollback may keep it, and younger ones expire.
    """
    by_number = {item.get("sequence-number", 0): item["timestamp-ms"] for item in snapshots.values()}
    # Each snapshot has a sequence number of its own, from version 2 of the format on.
    last = metadata.get("last-sequence-number", 0)
    missing = next((number for number in range(last, 0, -1) if number not in by_number), 0)
    later = [made_ms for number, made_ms in by_number.items() if number > missing]
    since = [min(later, default=metadata["last-updated-ms"])] if missing else []
    # Those of version 1 have none: there only parents say what has expired.
    known = {None, *snapshots}
    since += [
        item["timestamp-ms"]
        for item in snapshots.values()
        if item.get("sequence-number", 0) <= 1 and item.get("parent-snapshot-id") not in known
    ]
    return max(since, default=0)

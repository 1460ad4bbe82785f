"""Pointing a name at a metadata file that already exists, for tables and views alike."""

from __future__ import annotations

from dataclasses import replace

from app.catalog.context import Call, Catalog
from app.database.pointers import Advance, Creation, Pointer, PointerKind, PutOutcome
from app.database.warehouses import Warehouse
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, TableUuid
from app.errors import CommitStateUnknown, PointerMoved


def register(
    catalog: Catalog,
    call: Call,
    warehouse: Warehouse,
    identifier: TableIdentifier,
    kind: PointerKind,
    uuid: TableUuid,
    location: Location,
    seen: Pointer | None,
) -> None:
    """Make a pointer to a file, or move the one that was seen.

    Raises:
        NameTaken: the name is taken.
        NoSuchNamespace: the namespace is not there.
        PointerMoved: the table to be overwritten was changed meanwhile.
        CommitStateUnknown: the database did not answer.
    """
    change: Advance | Creation
    if seen is None:
        change = Creation(warehouse.id, kind, identifier, uuid, location, "registered")
    else:
        change = Advance(seen, location, uuid, "replaced")
    claim = replace(call.claim, result=location) if call.claim else None
    match catalog.pointers.check_and_put([change], call.author(catalog.now_ms()), claim):
        case PutOutcome.MOVED:
            raise PointerMoved(identifier, 1)
        case PutOutcome.UNKNOWN:
            if not catalog.pointers.has_landed(change):
                raise CommitStateUnknown(
                    f"Cannot tell whether {identifier} was registered: the database did not answer; look whether "
                    "it is there"
                )
        case PutOutcome.ADVANCED:
            return

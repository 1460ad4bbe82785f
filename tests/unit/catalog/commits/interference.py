"""Pointers that meddle, and the files and updates that tests of commits look at."""

from __future__ import annotations

from collections.abc import Sequence

from app.catalog.context.catalog import Catalog
from app.database.outcomes.idempotency_keys import IdempotencyClaim
from app.database.outcomes.receipt import CommitReceipt
from app.database.pointers.history import Author
from app.database.pointers.moves import Advance, Creation, Unmoved
from app.database.pointers.pointers import Pointers, PutOutcome
from app.engine.change.updates import (
    AddSchema,
    AddSortOrder,
    AddSpec,
    AssignUuid,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    Update,
)
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, SchemaId, SortOrderId, SpecId, TableUuid
from app.engine.model.partition_spec import UnboundPartitionSpec
from app.engine.model.sort_order import UNSORTED
from app.errors import (
    DatabaseUnavailable,
)
from tests.builders.catalogs import with_server
from tests.builders.tables import (
    FLIGHTS,
    SCHEMA,
)

ARRIVALS = TableIdentifier(FLIGHTS, "arrivals")


class InterferingPointers(Pointers):
    """Pointers that let somebody else act just before a check-and-put, or lose its reply."""

    def __init__(self, pointers: Pointers) -> None:
        super().__init__(pointers._database)
        self.rivals: list[Sequence[Advance]] = []
        self.lose_reply = False
        self.lose_request = False
        self.blind = False

    def check_and_put(
        self,
        changes: Sequence[Advance | Unmoved | Creation],
        author: Author,
        *claims: IdempotencyClaim | None,
        receipts: Sequence[CommitReceipt] = (),
    ) -> PutOutcome:
        if self.rivals:
            super().check_and_put(self.rivals.pop(0), author)
        if self.lose_request:
            return PutOutcome.UNKNOWN
        outcome = super().check_and_put(changes, author, *claims, receipts=receipts)
        return PutOutcome.UNKNOWN if self.lose_reply else outcome

    def has_landed(self, change: Advance | Creation, author: Author) -> bool:
        if self.blind:
            raise DatabaseUnavailable("the database is gone")
        return super().has_landed(change, author)


def interfering(catalog: Catalog) -> tuple[Catalog, InterferingPointers]:
    pointers = InterferingPointers(catalog.server.pointers)
    return with_server(catalog, pointers=pointers), pointers


def files_in(catalog: Catalog) -> set[str]:
    return {item.location for item in catalog.files.list_files(Location(catalog.warehouse.root_location))}


def creation_updates(uuid: str = "11111111-1111-1111-1111-111111111111") -> list[Update]:
    return [
        AssignUuid(uuid=TableUuid(uuid)),
        AddSchema(schema_=SCHEMA),
        SetCurrentSchema(schema_id=SchemaId(-1)),
        AddSpec(spec=UnboundPartitionSpec(fields=())),
        SetDefaultSpec(spec_id=SpecId(-1)),
        AddSortOrder(sort_order=UNSORTED),
        SetDefaultSortOrder(sort_order_id=SortOrderId(-1)),
        SetLocation(location=Location("memory://wh/flights/staged")),
    ]

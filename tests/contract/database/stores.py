"""The stores on one database, and short ways to fill and read them."""

from __future__ import annotations

from dataclasses import dataclass

from app.database.connections.database import Database
from app.database.deletions.file_deletions import FileDeletions
from app.database.namespaces import Namespaces
from app.database.outcomes.idempotency_keys import IdempotencyClaim, IdempotencyKeys
from app.database.pointers.history import Author
from app.database.pointers.left_files import QueuedExpiry
from app.database.pointers.moves import Advance, Creation
from app.database.pointers.pointer import Pointer, PointerKind
from app.database.pointers.pointers import Pointers, PutOutcome
from app.database.scan_plans import ScanPlan, ScanPlans
from app.database.signing_keys import SigningKeys
from app.database.warehouses import Warehouse, Warehouses
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location, TableUuid
from tests.builders.queues import let_queue_age

NOW_MS = 1_700_000_000_000
AUTHOR = Author("alice", "request-1", NOW_MS)


def name(dotted: str) -> TableIdentifier:
    """Return the identifier that reads like this: `sales.eu.orders`."""
    *levels, last = dotted.split(".")
    return TableIdentifier(Namespace(tuple(levels)), last)


def levels(dotted: str) -> Namespace:
    return Namespace(tuple(dotted.split(".")))


def claim(key: str = "key-1", *, principal: str = "alice", now_ms: int = NOW_MS) -> IdempotencyClaim:
    return IdempotencyClaim(principal, key, "hash-1", now_ms, now_ms + 1000, "what a success left")


@dataclass(frozen=True)
class Stores:
    """The stores on one database that has one warehouse."""

    database: Database
    warehouse: Warehouse
    warehouses: Warehouses
    namespaces: Namespaces
    pointers: Pointers
    idempotency_keys: IdempotencyKeys
    file_deletions: FileDeletions
    scan_plans: ScanPlans
    signing_keys: SigningKeys

    @staticmethod
    def on(database: Database) -> Stores:
        """Find the warehouse, or create it."""
        warehouses = Warehouses(database)
        return Stores.of(
            database,
            warehouses.find("main") or warehouses.create("main", "file:///lake", created_ms=NOW_MS),
        )

    @staticmethod
    def of(database: Database, warehouse: Warehouse) -> Stores:
        """Do not ask the database, which may be gone."""
        return Stores(
            database,
            warehouse,
            Warehouses(database),
            Namespaces(database),
            Pointers(database),
            IdempotencyKeys(database),
            FileDeletions(database),
            ScanPlans(database),
            SigningKeys(database),
        )

    @property
    def id(self) -> int:
        """The warehouse's."""
        return self.warehouse.id

    def add_namespace(self, dotted: str) -> Namespace:
        self.namespaces.create(self.id, levels(dotted), {}, AUTHOR)
        return levels(dotted)

    def creation(self, dotted: str, kind: PointerKind = PointerKind.TABLE, uuid: str = "") -> Creation:
        return Creation(
            self.id, kind, name(dotted), TableUuid(uuid or f"uuid of {dotted}"), Location(f"{dotted}/0.json")
        )

    def add(self, dotted: str, kind: PointerKind = PointerKind.TABLE, uuid: str = "") -> Pointer:
        """Create a pointer, in a namespace that exists, and return it."""
        assert self.pointers.check_and_put([self.creation(dotted, kind, uuid)], AUTHOR) is PutOutcome.ADVANCED
        return self.there(dotted)

    def there(self, dotted: str) -> Pointer:
        """Return the pointer of this name, which must exist."""
        found = self.pointers.find(self.id, name(dotted))
        assert found is not None, f"{dotted} is not there"
        return found

    def submit(self, plan_id: str, pointer_id: int = 1) -> ScanPlan:
        """Remember a plan that is being made."""
        plan = ScanPlan(plan_id, pointer_id, "submitted", None, NOW_MS + 100, NOW_MS + 1000)
        self.scan_plans.add(plan, NOW_MS)
        return plan

    def expire(self, dotted: str, location: str = "expired.json", grace_ms: int | None = 0) -> PutOutcome:
        """Move a pointer by a commit that puts files out of reach."""
        seen = self.there(dotted)
        move = Advance(seen, Location(location), seen.uuid, expiry=QueuedExpiry('{"snapshots":[]}', grace_ms))
        return self.pointers.check_and_put([move], AUTHOR)

    def move_queue(self, by_ms: int) -> None:
        """Let time pass for the queue of file deletions, whose clock is the database's."""
        let_queue_age(self.file_deletions, by_ms)

    def advance(self, seen: Pointer, location: str) -> PutOutcome:
        return self.pointers.check_and_put([Advance(seen, Location(location), seen.uuid)], AUTHOR)

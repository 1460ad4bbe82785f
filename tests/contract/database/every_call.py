"""Every call to the database that there is, for tests of what all of them have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.database.deletions.file_deletions import Deletion
from app.database.deletions.foreign_places import ForeignPlaces
from app.database.deletions.metadata_sweeps import MetadataSweeps
from app.database.deletions.old_rows import OldRows
from app.database.deletions.orphan_runs import OrphanBatch, OrphanRuns
from app.database.outcomes.receipt import CommitReceipt, Outcome, ReceiptHead
from app.database.outcomes.receipts import Receipts
from app.database.pointer_exports import PointerExports
from app.database.pointer_states import PointerStates
from app.database.pointers.moves import Advance
from app.database.pointers.pointer import Pointer, PointerKind
from app.database.pointers.recoverable import PURGE_NOW
from app.engine.model.ids import Location, SnapshotId, TableUuid
from app.errors import IcetowerError
from tests.contract.database.stores import AUTHOR, NOW_MS, Stores, claim, levels, name

TABLE = PointerKind.TABLE
NEVER_SEEN = Pointer(1, 1, TABLE, name("a.t"), TableUuid("u"), Location("l"))
FAILED = CommitReceipt(
    ReceiptHead("0", "drop_table", "main", "alice", None, None, NOW_MS), Outcome.FAILED, NOW_MS
)
NEVER_LEASED = Deletion(1, "purge", 1, TableUuid("u"), Location("l"), "a.t", 0, NOW_MS, None, None, 0, 0)

READS: dict[str, Callable[[Stores], Any]] = {
    "foreign readers": lambda stores: ForeignPlaces(stores.database).readers(["s3://b/"], None),
    "unknown readers": lambda stores: ForeignPlaces(stores.database).unknown(0, 1),
    "foreign places": lambda stores: ForeignPlaces(stores.database).of_table(1),
    "own places": lambda stores: ForeignPlaces(stores.database).own_places(1),
    "find": lambda stores: stores.pointers.find(1, name("a.t")),
    "find_many": lambda stores: stores.pointers.find_many([(1, name("a.t"))]),
    "list_names": lambda stores: stores.pointers.list_names(1, levels("a"), TABLE),
    "may_share_files": lambda stores: stores.pointers.may_share_files(TableUuid("u")),
    "claims": lambda stores: stores.pointers.claims(["l"], ["file:///lake/"]),
    "is_free": lambda stores: stores.pointers.is_free("file:///lake/"),
    "taken_of": lambda stores: stores.pointers.taken_of(["file:///lake/"]),
    "history": lambda stores: stores.pointers.history(1),
    "namespaces.find": lambda stores: stores.namespaces.find(1, levels("a")),
    "list_children": lambda stores: stores.namespaces.list_children(1, None),
    "list_children of": lambda stores: stores.namespaces.list_children(1, levels("a")),
    "warehouses.find": lambda stores: stores.warehouses.find("main"),
    "warehouses.list": lambda stores: stores.warehouses.list(),
    "warehouses.list_after": lambda stores: stores.warehouses.list_after("a", 10),
    "idempotency_keys.find": lambda stores: stores.idempotency_keys.find("alice", "key-1", NOW_MS),
    "counts": lambda stores: stores.file_deletions.counts(),
    "count waiting": lambda stores: stores.file_deletions.count_waiting(),
    "waiting": lambda stores: stores.file_deletions.waiting(1, 10),
    "known_files": lambda stores: MetadataSweeps(stores.database).known_files(1, TableUuid("u")),
    "has_expired": lambda stores: stores.file_deletions.has_expired(TableUuid("u"), SnapshotId(1)),
    "find_expired": lambda stores: stores.file_deletions.find_expired(TableUuid("u"), Location("l")),
    "scan_plans.find": lambda stores: stores.scan_plans.find("there", 1, NOW_MS),
    "receipts.find": lambda stores: Receipts(stores.database).find("0"),
    "find_by_key": lambda stores: Receipts(stores.database).find_by_key("alice", "key-1"),
    "find_by_request": lambda stores: Receipts(stores.database).find_by_request("alice", "request-1"),
    "all namespaces": lambda stores: stores.namespaces.list_all(1, None, 10),
    "last sequence": lambda stores: PointerExports(stores.database).last_sequence(),
    "places left": lambda stores: PointerExports(stores.database).places_left([1]),
    "drop times": lambda stores: PointerExports(stores.database).drop_times(1),
    "current pointers": lambda stores: list(PointerStates(stores.database).current()),
    "states of a table": lambda stores: PointerStates(stores.database).of_table(TableUuid("u"), 1),
    "states left": lambda stores: PointerStates(stores.database).left(),
    "states ended": lambda stores: PointerStates(stores.database).ended(TableUuid("u")),
    "queued expiries": lambda stores: PointerStates(stores.database).queued_expiries(TableUuid("u")),
    "orphan batches": lambda stores: OrphanRuns(stores.database).waiting(1),
    "orphan runs": lambda stores: OrphanRuns(stores.database).of_table(TableUuid("u"), 10),
    "other_purges": lambda stores: stores.file_deletions.other_purges(NEVER_LEASED),
    "was_purged": lambda stores: stores.file_deletions.was_purged(NEVER_LEASED),
    "find_purge": lambda stores: stores.file_deletions.find_purge(TableUuid("u")),
}
LOCKED_READS: dict[str, Callable[[Stores], Any]] = {
    "find_locked": lambda stores: stores.pointers.find_locked(1),
    "has_landed": lambda stores: stores.pointers.has_landed(
        Advance(NEVER_SEEN, Location("m"), TableUuid("u")), AUTHOR
    ),
}
WRITES: dict[str, Callable[[Stores], Any]] = {
    "check writes": lambda stores: stores.database.check_writes(),
    "check_and_put advance": lambda stores: stores.advance(NEVER_SEEN, "m"),
    "check_and_put creation": lambda stores: stores.add("a.new"),
    "rename": lambda stores: stores.pointers.rename(1, TABLE, name("a.t"), name("a.u"), AUTHOR),
    "drop pointer": lambda stores: stores.pointers.drop(
        1, name("a.spare"), TABLE, AUTHOR, recovery=PURGE_NOW
    ),
    "create namespace": lambda stores: stores.namespaces.create(1, levels("b.c"), {}, AUTHOR),
    "drop namespace": lambda stores: stores.namespaces.drop(1, levels("empty"), AUTHOR),
    "update_properties": lambda stores: stores.namespaces.update_properties(
        1, levels("a"), [], {"x": "y"}, AUTHOR
    ),
    "create warehouse": lambda stores: stores.warehouses.create("other", "file:///x", created_ms=NOW_MS),
    "update warehouse": lambda stores: stores.warehouses.update("main", lambda there: there),
    "drop warehouse": lambda stores: stores.warehouses.drop("spare"),
    "record": lambda stores: stores.idempotency_keys.record(claim("new"), 404, ""),
    "delete_expired": lambda stores: stores.idempotency_keys.delete_expired(NOW_MS * 2),
    "lease": lambda stores: stores.file_deletions.lease(1000),
    "begin": lambda stores: stores.file_deletions.begin(NEVER_LEASED, None),
    "begin a sweep": lambda stores: stores.file_deletions.begin_sweep(NEVER_SEEN, NOW_MS, 1000),
    "finish": lambda stores: stores.file_deletions.finish(NEVER_LEASED, "done"),
    "old rows": lambda stores: OldRows(stores.database).delete(1_000),
    "mark orphans": lambda stores: OrphanRuns(stores.database).mark(
        NEVER_SEEN, "{}", 0, NOW_MS, [OrphanBatch(0, "[]", 0, 0)]
    ),
    "orphan batch done": lambda stores: OrphanRuns(stores.database).batch_done(NEVER_LEASED, 0, 1, 1),
    "replace foreign places": lambda stores: ForeignPlaces(stores.database).replace(1, {"": 1}, ["s3://b/"]),
    "take a sweep": lambda stores: MetadataSweeps(stores.database).take(0),
    "release": lambda stores: stores.file_deletions.release(NEVER_LEASED),
    "hold": lambda stores: stores.file_deletions.hold(NEVER_LEASED, 1000),
    "note": lambda stores: stores.file_deletions.note(NEVER_LEASED, "{}"),
    "note empty looks": lambda stores: stores.file_deletions.note_empty_looks(NEVER_LEASED, 1),
    "come back": lambda stores: stores.file_deletions.come_back(NEVER_LEASED, 1000, "{}"),
    "add plan": lambda stores: stores.submit("new"),
    "renew plan": lambda stores: stores.scan_plans.renew("there", NOW_MS),
    "finish plan": lambda stores: stores.scan_plans.finish("there", "completed", "[]"),
    "cancel plan": lambda stores: stores.scan_plans.cancel("there", 1),
    "delete_expired plans": lambda stores: stores.scan_plans.delete_expired(NOW_MS * 2),
    "signing key": lambda stores: stores.signing_keys.find_or_create("new", 8, NOW_MS),
    "note receipts": lambda stores: Receipts(stores.database).note([FAILED]),
    "give up a request": lambda stores: Receipts(stores.database).give_up(FAILED),
    "postpone": lambda stores: stores.file_deletions.postpone(NEVER_LEASED, 1000, "error"),
}
EVERY_CALL = READS | LOCKED_READS | WRITES


def fill(stores: Stores) -> None:
    """Add what the calls find."""
    stores.add_namespace("a")
    stores.add_namespace("empty")
    stores.add("a.t")
    stores.add("a.spare")
    stores.add("a.purged")
    stores.pointers.drop(stores.id, name("a.purged"), TABLE, AUTHOR, recovery=PURGE_NOW)
    stores.add("a.expired")
    stores.expire("a.expired")
    stores.submit("there")
    stores.idempotency_keys.record(claim("old"), 404, "")
    stores.warehouses.create("spare", "file:///spare", created_ms=NOW_MS)


def error_of(call: Callable[[Stores], Any], stores: Stores) -> IcetowerError | None:
    """Return what the call raises, which must be an error of ours."""
    try:
        call(stores)
    except IcetowerError as error:
        return error
    return None

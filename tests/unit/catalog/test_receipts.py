"""Receipts: what is certain of a request that was answered, was not, or is at work elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import update

from app.catalog.commits.door import land_all
from app.catalog.commits.table_commits import TableCommit
from app.catalog.commits.wishes import Wish
from app.catalog.context.callers import Caller
from app.catalog.context.catalog import Catalog
from app.catalog.context.seen import receipt_book
from app.catalog.context.seen.receipt_book import LOST_AFTER_MS, MOST_AT_ONCE, ReceiptBook
from app.catalog.receipts import list_receipts, load_receipt, metadata_version
from app.database.connections.database import Database
from app.database.outcomes.receipt import ID_LENGTH, CommitReceipt, Outcome, ReceiptHead, id_of_time
from app.database.outcomes.receipts import Receipts, insert_landed
from app.database.schema.rows import receipts as rows
from app.engine.change.requirements import AssertRefSnapshotId, Requirement
from app.engine.change.updates import AddSnapshot, SetProperties, SetSnapshotRef, Update
from app.engine.model.table_metadata import TableMetadata
from app.errors import CommitStateUnknown, DatabaseUnavailable, NoSuchCommit
from tests.builders.catalogs import START_MS, with_server
from tests.builders.racing_writers import commit, rebasing_table, sent, writer
from tests.builders.tables import DEPARTURES, append_to, load_table, snapshot_on, table_in
from tests.unit.catalog.commits.interference import interfering

_NUMBERS = itertools.count()


def new_head(key: str | None = None, request_id: str | None = None) -> ReceiptHead:
    commit_id = id_of_time(START_MS + next(_NUMBERS)).ljust(ID_LENGTH, "0")
    return ReceiptHead(commit_id, "commit_table", "wh", "tester", request_id, key, START_MS)


def calling(catalog: Catalog, head: ReceiptHead) -> Catalog:
    return replace(catalog, caller=Caller("tester", "request", None, head))


def wish(
    catalog: Catalog, updates: Sequence[Update], *requirements: Requirement
) -> tuple[ReceiptHead, Wish[TableMetadata, Any]]:
    head = new_head()
    return head, Wish(calling(catalog, head), [TableCommit(DEPARTURES, requirements, updates)])


def failed(head: ReceiptHead, outcome: Outcome = Outcome.FAILED) -> CommitReceipt:
    return CommitReceipt(head, outcome, START_MS, error={"message": "no", "type": "T", "code": 409})


def outcome_of(catalog: Catalog, head: ReceiptHead) -> Outcome:
    return load_receipt(catalog, head.commit_id).outcome


def test_each_request_of_a_group_has_its_own_receipt(catalog: Catalog) -> None:
    before = append_to(catalog, table_in(catalog)).metadata
    stale = AssertRefSnapshotId(ref="main", snapshot_id=None)
    ours = snapshot_on(before)
    appending: list[Update] = [
        AddSnapshot(snapshot=ours),
        SetSnapshotRef(ref_name="b", type="branch", snapshot_id=ours.snapshot_id),
    ]
    first, second = wish(catalog, [SetProperties(updates={"a": "b"})]), wish(catalog, appending)
    refused, idle = wish(catalog, [SetProperties(updates={"c": "d"})], stale), wish(catalog, [])

    land_all([each for _, each in (first, refused, second, idle)])

    location = load_table(catalog).location
    landed = [load_receipt(catalog, head.commit_id) for head, _ in (first, second)]
    assert [receipt.landed_together for receipt in landed] == [2, 2]
    assert [receipt.changes[0].location_after for receipt in landed] == [location, location]
    assert [receipt.changes[0].snapshot_ids for receipt in landed] == [(), (ours.snapshot_id,)]
    assert [metadata_version(receipt.changes[0]) for receipt in landed] == [2, 2]
    assert outcome_of(catalog, idle[0]) is Outcome.UNCHANGED
    with pytest.raises(NoSuchCommit):
        load_receipt(catalog, refused[0].commit_id)


class LandsWhileItIsWaitedFor(Receipts):
    """The receipts where one transaction is open, of which nothing can be seen until it has ended."""

    def __init__(self, database: Database, receipt: CommitReceipt) -> None:
        super().__init__(database)
        self._landing = receipt

    def wait_for_open_transactions(self) -> None:
        self._database.write(lambda connection: insert_landed(connection, [self._landing]))


@pytest.mark.parametrize("known_as", [None, Outcome.UNKNOWN])
def test_nothing_is_said_of_a_request_before_all_open_transactions_have_ended(
    catalog: Catalog, known_as: Outcome | None
) -> None:
    """One of them may be the request's own, whose reply to COMMIT was lost."""
    head = new_head(key="key")
    stored = LandsWhileItIsWaitedFor(
        catalog.server.receipts.stored._database, CommitReceipt(head, Outcome.LANDED, START_MS)
    )
    book = ReceiptBook(stored, catalog.server.now_ms)
    asked = with_server(catalog, receipts=book)
    if known_as is not None:
        book.note(failed(head, known_as))

    (found,) = list_receipts(asked, key="key", request_id=None)

    assert found.outcome is Outcome.LANDED
    assert outcome_of(asked, head) is Outcome.LANDED


def test_a_rebased_commit_says_so(catalog: Catalog) -> None:
    rebasing_table(catalog)
    late = writer(catalog).append(["b"])
    commit(catalog, writer(catalog).append(["a"]))
    head = new_head()

    land_all([Wish(calling(catalog, head), [sent(late)])])

    (change,) = load_receipt(catalog, head.commit_id).changes
    assert change.rebased
    assert change.snapshot_ids == (late.snapshot.snapshot_id,)


@pytest.mark.parametrize("has_landed", [True, False])
def test_an_unknown_outcome_is_known_when_it_is_asked_for(catalog: Catalog, *, has_landed: bool) -> None:
    table_in(catalog)
    catalog, pointers = interfering(catalog)
    pointers.lose_reply, pointers.lose_request, pointers.blind = has_landed, not has_landed, True
    head, ours = wish(catalog, [SetProperties(updates={"a": "b"})])
    land_all([ours])
    with pytest.raises(CommitStateUnknown):
        ours.results()
    catalog.server.receipts.note(failed(head, Outcome.UNKNOWN))

    found = load_receipt(catalog, head.commit_id)

    assert found.outcome is (Outcome.LANDED if has_landed else Outcome.FAILED)
    assert outcome_of(catalog, head) is found.outcome


def test_a_failure_is_known_before_it_is_written_and_after(catalog: Catalog) -> None:
    head, book = new_head(key="k"), catalog.server.receipts
    book.begin(head)
    assert outcome_of(catalog, head) is Outcome.IN_PROGRESS

    book.note(failed(head))

    here = load_receipt(catalog, head.commit_id)
    book.write()
    elsewhere = with_server(catalog, receipts=ReceiptBook(book.stored, catalog.now_ms))
    there = load_receipt(elsewhere, head.commit_id)
    assert (here.outcome, here.error) == (there.outcome, there.error) == (Outcome.FAILED, failed(head).error)
    assert list_receipts(elsewhere, key="k", request_id=None) == [there]


def test_what_takes_long_is_seen_by_other_servers(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    head, book = new_head(request_id="r"), catalog.server.receipts
    elsewhere = with_server(catalog, receipts=ReceiptBook(book.stored, catalog.now_ms))
    book.begin(head)
    book.write()
    with pytest.raises(NoSuchCommit):
        load_receipt(elsewhere, head.commit_id)
    monkeypatch.setattr(receipt_book, "SLOW_SECONDS", -1.0)

    book.write()

    assert outcome_of(elsewhere, head) is Outcome.IN_PROGRESS
    assert [found.head for found in list_receipts(elsewhere, key=None, request_id="r")] == [head]
    book.end(head.commit_id)
    _grow_old(catalog)
    assert outcome_of(elsewhere, head) is Outcome.FAILED


def test_a_request_of_a_server_that_was_lost_before_the_clock_was_set_back_is_given_up(
    catalog: Catalog,
) -> None:
    heads = [new_head(), new_head()]
    catalog.server.receipts.stored.note([failed(head, Outcome.IN_PROGRESS) for head in heads])

    _grow_old(catalog, -LOST_AFTER_MS // 2)
    assert outcome_of(catalog, heads[0]) is Outcome.IN_PROGRESS  # a small step may be one of the clock
    _grow_old(catalog, -365 * 86_400_000)

    assert [outcome_of(catalog, head) for head in heads] == [Outcome.FAILED, Outcome.FAILED]


def test_a_request_of_a_lost_server_is_given_up_and_cannot_land(catalog: Catalog) -> None:
    before = table_in(catalog)
    head, ours = wish(catalog, [SetProperties(updates={"a": "b"})])
    company = wish(catalog, [SetProperties(updates={"c": "d"})])
    catalog.server.receipts.stored.note([failed(head, Outcome.IN_PROGRESS)])
    assert outcome_of(catalog, head) is Outcome.IN_PROGRESS
    _grow_old(catalog)

    receipt = load_receipt(catalog, head.commit_id)

    assert (receipt.outcome, receipt.error["code"]) == (Outcome.FAILED, 503)
    land_all([ours, company[1]])
    with pytest.raises(DatabaseUnavailable, match="given up"):
        ours.results()
    assert outcome_of(catalog, company[0]) is Outcome.LANDED
    properties = load_table(catalog).metadata.properties
    assert (properties.get("a"), properties.get("c")) == (None, "d")
    assert before.location != load_table(catalog).location


def test_a_key_names_what_landed_whatever_else_had_it(catalog: Catalog) -> None:
    book = catalog.server.receipts
    first, second = new_head(key="k"), new_head(key="k")
    book.note(failed(first))
    table_in(catalog)
    ours = Wish(calling(catalog, second), [TableCommit(DEPARTURES, (), [SetProperties(updates={"a": "b"})])])
    land_all([ours])

    found = list_receipts(catalog, key="k", request_id=None)

    assert [(each.head, each.outcome) for each in found] == [
        (second, Outcome.LANDED),
        (first, Outcome.FAILED),
    ]


class Unreachable(Receipts):
    """Receipts in a database that does not answer, until it does."""

    is_down = True

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.noted: list[int] = []

    def note(self, receipts: Sequence[CommitReceipt]) -> None:
        if self.is_down:
            raise DatabaseUnavailable("gone")
        self.noted.append(len(receipts))
        super().note(receipts)


def test_what_could_not_be_written_is_written_later_in_batches(catalog: Catalog) -> None:
    stored = Unreachable(catalog.server.receipts.stored._database)
    book = ReceiptBook(stored, catalog.now_ms)
    heads = [new_head() for _ in range(MOST_AT_ONCE + 3)]
    book.note(*map(failed, heads))
    book.write()
    stored.is_down = False

    book.write()
    book.write()

    # All of them at once: other processes rely on finding them after one interval.
    assert stored.noted == [MOST_AT_ONCE, 3]
    assert all(stored.find(head.commit_id) for head in heads)


def test_memory_is_bounded(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipt_book, "MOST_KEPT", 3)
    book = catalog.server.receipts
    heads = [new_head() for _ in range(5)]

    book.note(*map(failed, heads))

    assert [receipt.head for receipt in book.known(lambda _head: True)] == heads[2:]


def _grow_old(catalog: Catalog, by_ms: int = LOST_AFTER_MS) -> None:
    """Let time pass for the receipts that are written, or set it back."""
    age = update(rows).values(noted_ms=rows.c.noted_ms - by_ms)
    catalog.server.receipts.stored._database.write(lambda connection: connection.execute(age))

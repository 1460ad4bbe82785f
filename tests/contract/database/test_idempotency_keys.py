"""Idempotency keys: one answer for each, until its time is over."""

from __future__ import annotations

import pytest

from app.database.outcomes.idempotency_keys import IdempotencyClaim, RecordedOutcome
from app.errors import IdempotencyKeyTaken
from tests.contract.database.stores import NOW_MS, Stores, claim


def test_a_recorded_answer_is_found_by_its_principal_and_key(stores: Stores) -> None:
    stores.idempotency_keys.record(claim(), 409, "taken")

    found = stores.idempotency_keys.find("alice", "key-1", NOW_MS)

    assert found == RecordedOutcome("hash-1", 409, "taken", "")
    assert stores.idempotency_keys.find("bob", "key-1", NOW_MS) is None
    assert stores.idempotency_keys.find("alice", "key-2", NOW_MS) is None


def test_the_first_answer_stays(stores: Stores) -> None:
    stores.idempotency_keys.record(claim(), 404, "first")

    with pytest.raises(IdempotencyKeyTaken):
        stores.idempotency_keys.record(claim(), 409, "second")

    found = stores.idempotency_keys.find("alice", "key-1", NOW_MS)
    assert found == RecordedOutcome("hash-1", 404, "first", "")


def test_an_answer_is_forgotten_when_its_time_is_over(stores: Stores) -> None:
    stores.idempotency_keys.record(claim(), 409, "first")

    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS + 999) is not None
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS + 1000) is None


def test_an_expired_key_may_be_used_for_another_request(stores: Stores) -> None:
    stores.idempotency_keys.record(claim(), 409, "first")
    later = IdempotencyClaim("alice", "key-1", "hash-2", NOW_MS + 1000, NOW_MS + 2000)

    stores.idempotency_keys.record(later, 404, "second")

    found = stores.idempotency_keys.find("alice", "key-1", NOW_MS + 1000)
    assert found == RecordedOutcome("hash-2", 404, "second", "")
    with pytest.raises(IdempotencyKeyTaken):
        stores.idempotency_keys.record(later, 404, "third")


def test_expired_keys_are_deleted(stores: Stores) -> None:
    stores.idempotency_keys.record(claim("old"), 200, "")
    stores.idempotency_keys.record(claim("older", now_ms=NOW_MS - 500), 200, "")
    stores.idempotency_keys.record(claim("new", now_ms=NOW_MS + 1), 200, "")

    assert stores.idempotency_keys.delete_expired(NOW_MS + 1000) == 2

    assert stores.idempotency_keys.delete_expired(NOW_MS + 1000) == 0
    assert stores.idempotency_keys.find("alice", "old", NOW_MS) is None
    assert stores.idempotency_keys.find("alice", "new", NOW_MS) is not None

"""Plans of scans and signing keys: what every server on one database sees of them."""

from __future__ import annotations

from functools import partial

import pytest

from app.database.connections.database import Database
from app.database.scan_plans import ScanPlan, ScanPlans
from app.database.signing_keys import SigningKeys
from tests.contract.database.races import run_together
from tests.contract.database.stores import NOW_MS, Stores


def found(stores: Stores, plan_id: str = "p", pointer_id: int = 1, now_ms: int = NOW_MS) -> ScanPlan:
    plan = stores.scan_plans.find(plan_id, pointer_id, now_ms)
    assert plan is not None
    return plan


def test_plan_is_found_as_it_was_added(stores: Stores) -> None:
    plan = stores.submit("p")

    assert found(stores) == plan


def test_plan_of_another_table_is_not_found(stores: Stores) -> None:
    stores.submit("p", pointer_id=1)

    assert stores.scan_plans.find("p", 2, NOW_MS) is None
    assert stores.scan_plans.find("other", 1, NOW_MS) is None


def test_plan_is_found_until_it_expires(stores: Stores) -> None:
    plan = stores.submit("p")

    assert stores.scan_plans.find("p", 1, plan.expires_ms - 1) == plan
    assert stores.scan_plans.find("p", 1, plan.expires_ms) is None


def test_lease_is_renewed_while_the_plan_is_being_made(stores: Stores) -> None:
    stores.submit("p")

    assert stores.scan_plans.renew("p", NOW_MS + 500)
    assert found(stores).leased_until_ms == NOW_MS + 500


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_what_became_of_a_plan_is_said_once(stores: Stores, state: str) -> None:
    stores.submit("p")

    assert stores.scan_plans.finish("p", state, "first")  # type: ignore[arg-type]  # one of the three
    assert not stores.scan_plans.finish("p", "completed", "second")
    assert not stores.scan_plans.renew("p", NOW_MS + 500)
    assert not stores.scan_plans.cancel("p", 1)

    assert (found(stores).state, found(stores).result) == (state, "first")


def test_only_the_tables_own_plan_is_cancelled(stores: Stores) -> None:
    stores.submit("p", pointer_id=1)

    assert not stores.scan_plans.cancel("p", 2)
    assert found(stores).state == "submitted"
    assert stores.scan_plans.cancel("p", 1)
    assert found(stores).state == "cancelled"


def test_expired_plans_are_forgotten_and_others_are_not(stores: Stores) -> None:
    plan = stores.submit("old")
    stores.scan_plans.add(ScanPlan("young", 1, "submitted", None, NOW_MS, plan.expires_ms + 1), NOW_MS)

    assert stores.scan_plans.delete_expired(plan.expires_ms) == 1
    assert stores.scan_plans.delete_expired(plan.expires_ms) == 0
    assert stores.scan_plans.find("young", 1, NOW_MS) is not None


def test_of_those_who_finish_and_cancel_together_one_wins(stores: Stores) -> None:
    stores.submit("p")

    outcomes = run_together(
        [partial(stores.scan_plans.finish, "p", "completed", "[]") for _ in range(3)]
        + [partial(stores.scan_plans.cancel, "p", 1) for _ in range(3)]
    )

    assert sorted(outcomes) == [False] * 5 + [True]


def test_first_secret_stays(stores: Stores) -> None:
    first = stores.signing_keys.find_or_create("a", 4, NOW_MS)

    assert len(first) == 4
    assert stores.signing_keys.find_or_create("a", 4, NOW_MS) == first
    assert SigningKeys(stores.database).find_or_create("a", 4, NOW_MS) == first
    assert stores.signing_keys.find_or_create("b", 4, NOW_MS) != first


def test_servers_that_need_a_key_at_once_get_the_same(database_url: str) -> None:
    databases = [Database.open(database_url) for _ in range(4)]

    secrets = run_together([partial(SigningKeys(each).find_or_create, "a", 4, NOW_MS) for each in databases])

    assert len(set(secrets)) == 1
    for each in databases:
        each.close()


def test_plans_outlive_the_server_that_made_them(database_url: str) -> None:
    first, second = Database.open(database_url), Database.open(database_url)
    plan = Stores.on(first).submit("p")
    first.close()

    assert ScanPlans(second).find("p", 1, NOW_MS) == plan
    second.close()

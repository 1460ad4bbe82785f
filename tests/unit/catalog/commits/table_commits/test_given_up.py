"""Commits whose client leaves while they are worked on."""

from __future__ import annotations

import pytest

from app.catalog.commits.table_commits import TableCommit, commit_transaction
from app.catalog.context.catalog import Catalog
from app.catalog.views import replace_view
from app.engine.change.requirements import AssertCreate
from app.engine.change.updates import SetProperties
from app.errors import GivenUp
from tests.builders.commits import commit_table
from tests.builders.patience import patient_for
from tests.builders.tables import DEPARTURES, load_table, table_in, view_in
from tests.unit.catalog.commits.interference import ARRIVALS, creation_updates


@pytest.mark.parametrize("creates", [False, True])
def test_updates_are_applied_no_further_once_the_client_has_gone(catalog: Catalog, *, creates: bool) -> None:
    before = table_in(catalog)
    name, requirements, first = (
        (ARRIVALS, [AssertCreate()], creation_updates()) if creates else (DEPARTURES, [], [])
    )
    updates = [*first, *(SetProperties(updates={f"k{number}": "v"}) for number in range(1_000))]

    with patient_for(20) as asked, pytest.raises(GivenUp):
        commit_table(catalog, name, requirements, updates)

    assert asked() == 21
    assert load_table(catalog, DEPARTURES).location == before.location


def test_transaction_goes_no_further_once_the_client_has_gone(catalog: Catalog) -> None:
    table_in(catalog)

    with patient_for(20) as asked, pytest.raises(GivenUp):
        commit_transaction(catalog, [TableCommit(DEPARTURES, [], []) for _ in range(1_000)])

    assert asked() == 21


def test_view_updates_are_applied_no_further_once_the_client_has_gone(catalog: Catalog) -> None:
    view_in(catalog)
    updates = [SetProperties(updates={f"k{number}": "v"}) for number in range(1_000)]

    with patient_for(20) as asked, pytest.raises(GivenUp):
        replace_view(catalog, DEPARTURES, [], updates)

    assert asked() == 21

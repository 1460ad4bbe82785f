"""Steps of the tests of rebuilding."""

from __future__ import annotations

from app.catalog.context.catalog import Catalog
from app.catalog.rebuild.carrying_out import carry_out
from app.catalog.rebuild.planning import RebuildItem, RebuildPlan, RebuildWish, plan_rebuild
from app.engine.change.updates import SetProperties
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from tests.builders.tables import (
    DEPARTURES,
    commit_to,
)

WISH = RebuildWish()


def commit(catalog: Catalog, number: int, identifier: TableIdentifier = DEPARTURES) -> Location:
    location = commit_to(catalog, SetProperties(updates={"n": str(number)}), identifier=identifier).location
    assert location is not None
    return location


def rebuild(catalog: Catalog, wish: RebuildWish = WISH) -> RebuildPlan:
    plan = plan_rebuild(catalog, wish)
    assert [outcome.failure for outcome in carry_out(catalog, plan) if outcome.failure] == []
    return plan


def sole(plan: RebuildPlan) -> RebuildItem:
    (item,) = plan.items
    return item

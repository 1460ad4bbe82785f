from __future__ import annotations

from typing import Any

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, VIEWS, Kind
from app.engine.model.ids import Location
from app.errors import CommitStateUnknown
from tests.builders.tables import DEPARTURES, table_in, view_in
from tests.unit.catalog.commits.interference import ARRIVALS, files_in, interfering

KINDS = pytest.mark.parametrize("kind", [TABLES, VIEWS], ids=str)


def stored(catalog: Catalog, kind: Kind[Any]) -> Location:
    """Return where the metadata file of a table or view is that no name points to."""
    location = (table_in(catalog) if kind is TABLES else view_in(catalog)).location
    named.drop(catalog, kind, DEPARTURES)
    assert location is not None
    return location


@KINDS
def test_registration_that_landed_although_its_reply_was_lost_is_a_success(
    catalog: Catalog, kind: Kind[Any]
) -> None:
    location = stored(catalog, kind)
    meddled, pointers = interfering(catalog)
    pointers.lose_reply = True

    assert named.register(meddled, kind, ARRIVALS, location).location == location

    assert catalog.load(kind, ARRIVALS).metadata_location == location


@KINDS
@pytest.mark.parametrize("blind", [False, True])
def test_registration_of_unknown_outcome_is_never_answered_as_if_nothing_had_changed(
    catalog: Catalog, kind: Kind[Any], blind: bool
) -> None:
    location = stored(catalog, kind)
    meddled, pointers = interfering(catalog)
    pointers.lose_request = not blind
    pointers.lose_reply = pointers.blind = blind

    with pytest.raises(CommitStateUnknown, match="Nothing was deleted"):
        named.register(meddled, kind, ARRIVALS, location)

    assert location in files_in(catalog)
    assert (catalog.find(ARRIVALS) is not None) is blind


@KINDS
def test_registration_whose_request_is_lost_is_not_taken_for_an_earlier_one(
    catalog: Catalog, kind: Kind[Any]
) -> None:
    location = stored(catalog, kind)
    named.register(catalog, kind, ARRIVALS, location)
    named.drop(catalog, kind, ARRIVALS)
    meddled, pointers = interfering(catalog)
    pointers.lose_request = True

    with pytest.raises(CommitStateUnknown):
        named.register(meddled, kind, ARRIVALS, location)

    assert catalog.find(ARRIVALS) is None

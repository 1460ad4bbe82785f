"""Update lists applied by Iceberg's own builder and by our engine make the same table, or are refused alike."""

from __future__ import annotations

import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.conformance.oracle import engine
from tests.conformance.oracle.agreed_differences import APPLYING
from tests.conformance.oracle.columns import orders, schemas, specs
from tests.conformance.oracle.differences import Case
from tests.conformance.oracle.outcomes import Accepted, Json, Outcome, Refused
from tests.conformance.oracle.reference import Reference
from tests.conformance.oracle.table_documents import TABLE_LOCATION, table_documents
from tests.conformance.oracle.update_lists import creations, update_lists

pytestmark = pytest.mark.spark

METADATA_LOCATION = f"{TABLE_LOCATION}/metadata/00004-5d4f7b2e.metadata.json"


def now_ms() -> int:
    """The reference takes the time from the real clock, so our side is given the same."""
    return int(time.time() * 1000)


@given(data=st.data())
def test_a_commit_makes_the_same_table(reference: Reference, data: st.DataObject) -> None:
    base = data.draw(table_documents(), "base")
    updates = data.draw(update_lists(base), "updates")

    theirs = reference.commit(base, METADATA_LOCATION, updates)
    ours = engine.commit(base, METADATA_LOCATION, updates, now_ms())

    assert not (isinstance(theirs, Refused) and theirs.step == "base"), (
        "the base is a table that was written before"
    )
    APPLYING.check(Case(base, updates), theirs, ours)
    check_read_back(reference, Case(base, updates), ours)


@given(data=st.data())
def test_a_replacement_by_the_reference_makes_the_same_table(
    reference: Reference, data: st.DataObject
) -> None:
    base = data.draw(table_documents(), "base")
    version = base["format-version"]
    schema = data.draw(schemas(version=version, sloppy=False), "schema")
    spec = data.draw(st.none() | specs(schema, sloppy=False), "spec")
    order = data.draw(st.none() | orders(schema, sloppy=False), "order")
    updates = reference.replacement(base, schema, spec, order, {"owner": "me"})
    assume(updates)
    assert updates is not None

    theirs = reference.commit(base, METADATA_LOCATION, updates)
    ours = engine.commit(base, METADATA_LOCATION, updates, now_ms())

    APPLYING.check(Case(base, updates), theirs, ours)
    check_read_back(reference, Case(base, updates), ours)


@given(updates=creations())
def test_updates_alone_make_the_same_new_table(reference: Reference, updates: list[Json]) -> None:
    theirs = reference.create(updates)
    ours = engine.create(updates, now_ms())

    APPLYING.check(Case({}, updates), theirs, ours)
    check_read_back(reference, Case({}, updates), ours)


def check_read_back(reference: Reference, asked: Case, ours: Outcome) -> None:
    """The reference reads what we write, also where it would not have written it, and we read what it writes."""
    if not isinstance(ours, Accepted):
        return
    theirs = reference.read_table(ours.document)
    assert isinstance(theirs, Accepted), theirs
    ours_again = engine.read_table(theirs.document)
    assert isinstance(ours_again, Accepted), ours_again
    expected = APPLYING.normalised(ours.document, asked)
    assert APPLYING.normalised(theirs.document, asked) == expected
    assert APPLYING.normalised(ours_again.document, asked) == expected

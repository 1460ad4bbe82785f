"""Views: changed and created by Iceberg's own builder and by our engine with the same result."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.oracle import engine
from tests.conformance.oracle.agreed_differences import APPLYING
from tests.conformance.oracle.columns import schemas
from tests.conformance.oracle.differences import Case
from tests.conformance.oracle.outcomes import Accepted, Outcome
from tests.conformance.oracle.reference import Reference
from tests.conformance.oracle.table_documents import START_MS, UUID
from tests.conformance.oracle.view_documents import (
    PROPERTIES,
    VIEW_LOCATION,
    versions,
    view_documents,
    view_update_lists,
)

pytestmark = pytest.mark.spark


def now_ms() -> int:
    return int(time.time() * 1000)


@given(data=st.data())
def test_a_commit_makes_the_same_view(reference: Reference, data: st.DataObject) -> None:
    base = data.draw(view_documents(), "base")
    updates = data.draw(view_update_lists(base), "updates")

    theirs = reference.commit_view(base, updates)
    ours = engine.commit_view(base, updates, now_ms())

    APPLYING.check(Case(base, updates), theirs, ours)
    check_read_back(reference, Case(base, updates), ours)


@given(data=st.data())
def test_a_create_request_makes_the_same_view(reference: Reference, data: st.DataObject) -> None:
    schema = data.draw(schemas(), "schema")
    version = data.draw(versions(data.draw(st.sampled_from((1, 1, 1, 5))), 0, START_MS), "version")
    properties = data.draw(st.sampled_from(PROPERTIES), "properties")

    theirs = reference.new_view(schema, version, VIEW_LOCATION, properties, UUID)
    ours = engine.new_view(schema, version, VIEW_LOCATION, properties, UUID, now_ms())

    APPLYING.check(Case(), theirs, ours)
    check_read_back(reference, Case(), ours)


def check_read_back(reference: Reference, asked: Case, ours: Outcome) -> None:
    """The reference reads what we write, and we read what it writes."""
    if not isinstance(ours, Accepted):
        return
    theirs = reference.read_view(ours.document)
    assert isinstance(theirs, Accepted), theirs
    ours_again = engine.read_view(theirs.document)
    assert isinstance(ours_again, Accepted), ours_again
    expected = APPLYING.normalised(ours.document, asked)
    assert APPLYING.normalised(theirs.document, asked) == expected
    assert APPLYING.normalised(ours_again.document, asked) == expected

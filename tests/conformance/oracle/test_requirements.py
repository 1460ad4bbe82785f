"""Requirements: checked alike, in the same words, and derived alike from updates."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.conformance.oracle import engine
from tests.conformance.oracle.agreed_differences import APPLYING
from tests.conformance.oracle.differences import Case
from tests.conformance.oracle.outcomes import Accepted, Json, Refused
from tests.conformance.oracle.reference import Reference
from tests.conformance.oracle.requirement_lists import requirement_lists, view_requirement_lists
from tests.conformance.oracle.table_documents import table_documents
from tests.conformance.oracle.update_lists import creations, update_lists
from tests.conformance.oracle.view_documents import view_documents

pytestmark = pytest.mark.spark


@given(data=st.data())
def test_requirements_hold_on_the_same_tables(reference: Reference, data: st.DataObject) -> None:
    base = data.draw(table_documents(), "base")
    requirements = data.draw(requirement_lists(base), "requirements")

    theirs = reference.check_requirements(base, requirements)
    ours = engine.check_requirements(base, requirements)

    check_same_words(theirs, ours)


@given(data=st.data())
def test_requirements_hold_on_the_same_views(reference: Reference, data: st.DataObject) -> None:
    base = data.draw(view_documents(), "base")
    requirements = data.draw(view_requirement_lists(base), "requirements")

    theirs = reference.check_view_requirements(base, requirements)
    ours = engine.check_view_requirements(base, requirements)

    check_same_words(theirs, ours)


def check_same_words(theirs: Accepted | Refused, ours: Accepted | Refused) -> None:
    if isinstance(theirs, Refused) and theirs.message.startswith("Requirement failed: "):
        assert ours == theirs
    else:
        APPLYING.check(Case(), theirs, ours)


@given(data=st.data())
def test_the_same_requirements_follow_from_updates(reference: Reference, data: st.DataObject) -> None:
    base = data.draw(table_documents(), "base")
    updates = data.draw(update_lists(base), "updates")
    theirs = reference.requirements_for(base, updates)
    assume(theirs is not None)

    ours = engine.requirements_for(base, updates)

    assert ours[0] == {"type": "assert-table-uuid", "uuid": base["table-uuid"]}
    assert as_set(ours) == as_set(theirs)
    assert isinstance(reference.check_requirements(base, ours), Accepted)


@given(updates=creations())
def test_a_table_to_create_must_not_exist(reference: Reference, updates: list[Json]) -> None:
    theirs = reference.requirements_for(None, updates)
    assume(theirs is not None)

    assert engine.requirements_for(None, updates) == theirs


def as_set(requirements: list[Json] | None) -> set[str]:
    """All of them must hold, so their order and number say nothing; null and absent mean the same in them."""
    return {
        json.dumps({key: value for key, value in item.items() if value is not None}, sort_keys=True)
        for item in requirements or ()
    }

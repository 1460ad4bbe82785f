"""Metadata documents, whole and slightly broken, are read alike: same meaning, or refused by both."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.oracle import engine
from tests.conformance.oracle.differences import Case
from tests.conformance.oracle.reading_cases import almost_tables, almost_views
from tests.conformance.oracle.reading_differences import READING
from tests.conformance.oracle.reference import Reference

pytestmark = pytest.mark.spark


@given(data=st.data())
def test_tables_are_read_alike(reference: Reference, data: st.DataObject) -> None:
    document = data.draw(almost_tables(), "document")

    READING.check(Case(document), reference.read_table(document), engine.read_table(document))


@given(data=st.data())
def test_views_are_read_alike(reference: Reference, data: st.DataObject) -> None:
    document = data.draw(almost_views(), "document")

    READING.check(Case(document), reference.read_view(document), engine.read_view(document))

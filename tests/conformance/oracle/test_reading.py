"""Metadata documents, whole and slightly broken, are read alike: same meaning, or refused by both."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.conformance.oracle import engine
from tests.conformance.oracle.differences import Case
from tests.conformance.oracle.outcomes import Json
from tests.conformance.oracle.reading_cases import almost_tables, almost_views
from tests.conformance.oracle.reading_differences import READING
from tests.conformance.oracle.reference import Reference

pytestmark = pytest.mark.spark


@given(document=almost_tables())
def test_tables_are_read_alike(reference: Reference, document: Json) -> None:
    READING.check(Case(document), reference.read_table(document), engine.read_table(document))


@given(document=almost_views())
def test_views_are_read_alike(reference: Reference, document: Json) -> None:
    READING.check(Case(document), reference.read_view(document), engine.read_view(document))

"""Fixtures that hand a test the address of a running catalog."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import app.testing


@pytest.fixture
def icetower_url() -> Iterator[str]:
    """Address of an empty Iceberg REST catalog that this test has to itself."""
    with app.testing.icetower_catalog() as url:
        yield url


@pytest.fixture(scope="session")
def icetower_session_url() -> Iterator[str]:
    """Address of an Iceberg REST catalog that all tests of the session share."""
    with app.testing.icetower_catalog() as url:
        yield url

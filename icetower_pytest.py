"""The pytest plugin: fixtures that hand a test the address of a running catalog.

It stands beside the package `app`, not in it: pytest loads it in every run of an environment that Icetower is
installed in, and importing `app` there would hide a package of that name in the project under test. The catalog
itself is imported when a fixture is used.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest


def _catalog() -> AbstractContextManager[str]:
    running: AbstractContextManager[str] = importlib.import_module("app.testing").icetower_catalog()
    return running


@pytest.fixture
def icetower_url() -> Iterator[str]:
    """Address of an empty Iceberg REST catalog that this test has to itself."""
    with _catalog() as url:
        yield url


@pytest.fixture(scope="session")
def icetower_session_url() -> Iterator[str]:
    """Address of an Iceberg REST catalog that all tests of the session share."""
    with _catalog() as url:
        yield url

"""A PyIceberg catalog on a real server, and a fresh namespace for each test."""

from __future__ import annotations

import itertools

import pytest
from pyiceberg.catalog.rest import RestCatalog

_numbers = itertools.count(1)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], scope="session")
def catalog(request: pytest.FixtureRequest) -> RestCatalog:
    server = {"sqlite": "sqlite_server", "postgres": "postgres_backed_server"}[request.param]
    return RestCatalog("tower", uri=request.getfixturevalue(server))


@pytest.fixture
def namespace(catalog: RestCatalog) -> str:
    name = f"pyiceberg_{next(_numbers)}"
    catalog.create_namespace(name)
    return name

"""A real server, and tables for a maintainer to work at."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.testing import icetower_catalog

NUMBERS = itertools.count()
COLUMNS = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
}


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    with icetower_catalog() as url:
        yield url


@pytest.fixture
def catalog(server_url: str) -> Iterator[RemoteCatalog]:
    with RemoteCatalog(server_url) as connected:
        yield connected


@pytest.fixture
def namespace(catalog: RemoteCatalog) -> Namespace:
    made = Namespace((f"n{next(NUMBERS)}",))
    catalog.namespaces.create(made)
    return made


@pytest.fixture
def make_table(catalog: RemoteCatalog, namespace: Namespace) -> Callable[..., TableIdentifier]:
    """Make a table without files in the test's namespace, or in another one."""

    def make(name: str, place: Namespace = namespace, **properties: str) -> TableIdentifier:
        made = TableIdentifier(place, name)
        catalog.tables.create(made, COLUMNS, properties=properties)
        return made

    return make


@pytest.fixture
def table(make_table: Callable[..., TableIdentifier]) -> TableIdentifier:
    return make_table("t")

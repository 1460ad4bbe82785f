"""One catalog behind HTTP for the tests of a module; each test takes names of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import httpx
import pytest

from tests.builders.http_catalog import http_catalog, make_namespace

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with http_catalog(tmp_path_factory.mktemp("catalog")) as client:
        yield client


@pytest.fixture
def ns(api: httpx.Client) -> str:
    """Return a new, empty namespace of one level."""
    name = f"ns{next(_NUMBERS)}"
    make_namespace(api, name)
    return name

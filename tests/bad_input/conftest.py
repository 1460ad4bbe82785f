"""One catalog with something to lose, for all attacks of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bad_input.victim import MAX_BODY_BYTES, Victim
from tests.builders.http_catalog import http_catalog


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    folder = tmp_path_factory.mktemp("victim")
    with http_catalog(folder, max_body_bytes=MAX_BODY_BYTES) as client:
        attacked = Victim(client, folder)
        attacked.fill()
        yield attacked

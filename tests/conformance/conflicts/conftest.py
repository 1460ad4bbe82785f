"""One JVM with Iceberg and its in-memory catalog for all tests in this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.conflicts.reference import Reference
from tests.servers.jvm import iceberg_jvm


@pytest.fixture(scope="session")
def reference() -> Iterator[Reference]:
    with iceberg_jvm() as iceberg:
        yield Reference(iceberg)

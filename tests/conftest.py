"""What every kind of test needs: Hypothesis profiles, the servers that tests start, and who runs which test."""

from __future__ import annotations

import os
from typing import Any

import pytest
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import HealthCheck, settings

from app.cli.server.connections import raise_descriptor_limit
from tests.distribution import ByFile
from tests.servers.cloud_stores import azure, google
from tests.servers.postgres import own_postgres_server, postgres_server
from tests.servers.s3 import s3_server
from tests.servers.webhdfs import fake_hdfs, hdfs

__all__ = ["azure", "fake_hdfs", "google", "hdfs", "own_postgres_server", "postgres_server", "s3_server"]

# Time limits per example would make a slow machine fail: speed is measured in benchmarks/.
settings.register_profile("dev", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("dev"), derandomize=True)
settings.register_profile("nightly", parent=settings.get_profile("dev"), max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

# Every new client of httpx would read 150 root certificates, 30 ms each time; nothing here speaks TLS.
os.environ["SSL_CERT_DIR"] = os.devnull

# Stores that tests open stay open, as those of a server's warehouses do: at the end several hundred.
raise_descriptor_limit()

# Servers of tests are on this machine, also where others are only reached through a proxy.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "localhost,127.0.0.1,::1"

# By itself httpx waits for 5 s: a machine that is busy may need longer.
DEFAULT_TIMEOUT_CONFIG.connect = DEFAULT_TIMEOUT_CONFIG.read = 60
DEFAULT_TIMEOUT_CONFIG.write = DEFAULT_TIMEOUT_CONFIG.pool = 60


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    """Share the tests among the processes of a run."""
    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give each operation that Schemathesis tries an id of its own: from pytest 9.2 on its name alone says which."""
    if item.parent is not None and not item.nodeid.endswith(item.name):
        item._id = item.parent.id.child(item.name)

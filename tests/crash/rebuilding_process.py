"""A rebuild that kills itself, as SIGKILL would, at a named step, the first or a later time that it comes there."""

from __future__ import annotations

import os
import signal

from app.catalog.context.callers import Caller
from app.catalog.context.catalog import Catalog
from app.catalog.rebuild import carrying_out
from app.catalog.rebuild.carrying_out import carry_out
from app.catalog.rebuild.planning import RebuildWish, plan_rebuild
from app.main import build_server, open_database, prepare
from app.settings import load_settings


def main(url: str, root: str, wanted: str, passed: int) -> None:
    """Rebuild until killed, or to the end."""
    left = [passed]

    def step(name: str) -> None:
        if name == wanted:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    settings = load_settings({"database_url": url, "default_warehouse_location": root}).settings
    # Several batches, one after the other, so that a step comes more than once in a known order.
    carrying_out.BATCH, carrying_out.WORKERS = 2, 1
    database = open_database(settings)
    server = build_server(settings, database, step=step)
    prepare(settings, database, server)
    warehouse = server.warehouses.find(settings.default_warehouse)
    assert warehouse is not None
    catalog = Catalog(server, warehouse, Caller("rebuilder", "request"))
    failures = [outcome.failure for outcome in carry_out(catalog, plan_rebuild(catalog, RebuildWish()))]
    assert not any(failures), failures

"""The tower: the traffic on tables as this server process has seen it."""

from __future__ import annotations

from dataclasses import replace

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.seen.traffic import MOST_TABLES, TableTraffic
from app.catalog.context.server import Server
from app.catalog.slots.landing_slots import read_queue
from app.engine.model.identifiers import TableIdentifier


def all_traffic(server: Server) -> list[TableTraffic]:
    """Return the traffic on every table that is kept, for the metrics of this process."""
    return server.traffic.busiest(MOST_TABLES)


def table_traffic(catalog: Catalog, identifier: TableIdentifier) -> TableTraffic:
    """Return the traffic on one table; zeros if there was none, or long ago.

    Its queue is the one that all servers share, as it is now.

    Raises:
        NoSuchTable: no table has this name.
        DatabaseUnavailable: the database does not answer.
    """
    catalog.permit("table_traffic", identifier)
    pointer = catalog.load(TABLES, identifier)
    found = catalog.server.traffic.of((catalog.warehouse.name, identifier), pointer.uuid)
    stored = catalog.server.landing_queues.load(pointer.id)
    here = found.queue
    queue = replace(
        read_queue(stored).state_at(stored.now_ms),
        answers_held=here.answers_held,
        commits_at_gate=here.commits_at_gate,
    )
    return replace(found, queue=queue)


def busiest_tables(catalog: Catalog, most: int) -> list[TableTraffic]:
    """Return the busiest tables of the warehouse, the busiest first."""
    catalog.permit("busiest_tables")
    return catalog.server.traffic.busiest(most, catalog.warehouse.name)

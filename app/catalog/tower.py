"""The tower: the traffic on tables as this server process has seen it."""

from __future__ import annotations

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.server import Server
from app.catalog.context.traffic import MOST_TABLES, TableTraffic
from app.engine.model.identifiers import TableIdentifier


def all_traffic(server: Server) -> list[TableTraffic]:
    """Return the traffic on every table that is kept, for the metrics of this process."""
    return server.traffic.busiest(MOST_TABLES)


def table_traffic(catalog: Catalog, identifier: TableIdentifier) -> TableTraffic:
    """Return the traffic on one table; zeros if there was none, or long ago.

    Raises:
        NoSuchTable: no table has this name.
    """
    catalog.permit("table_traffic", identifier)
    catalog.load(TABLES, identifier)
    return catalog.server.traffic.of((catalog.warehouse.name, identifier))


def busiest_tables(catalog: Catalog, most: int) -> list[TableTraffic]:
    """Return the busiest tables of the warehouse, the busiest first."""
    catalog.permit("busiest_tables")
    return catalog.server.traffic.busiest(most, catalog.warehouse.name)

"""Checks whether the catalog can work: the database and the warehouses' files."""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog.context.rows import Warehouse
from app.catalog.context.server import Server
from app.engine.model.ids import Location
from app.errors import IcetowerError


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One checked part, and its problem (None if it has none)."""

    what: str
    problem: str | None


def check_database(server: Server) -> HealthCheck:
    """Ask the database for something."""
    try:
        server.warehouses.list()
    except IcetowerError as error:
        return HealthCheck("database", str(error))
    return HealthCheck("database", None)


def check_warehouse(server: Server, warehouse: Warehouse) -> HealthCheck:
    """Write and delete a small file below a warehouse's root."""
    what = f"warehouse {warehouse.name}"
    location = Location(f"{warehouse.root_location}/.icetower-ready-{server.new_uuid()}")
    try:
        files = server.files_of(warehouse)
        files.write_new(location, b"written to see whether the warehouse is writable\n")
        files.delete(location)
    except IcetowerError as error:
        return HealthCheck(what, str(error))
    return HealthCheck(what, None)

"""Warehouses: a name, a root location, and how its files are reached."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, exists, insert, select, update

from app.database.connections.database import Database
from app.database.connections.driver_errors import ConstraintBroken
from app.database.outcomes.receipt import LandedChange
from app.database.outcomes.receipts import insert_landed
from app.database.pointers.history import Author
from app.database.schema.rows import dropped, file_deletions, namespaces
from app.database.schema.rows import warehouses as rows
from app.database.statements.batches import delete_in_batches
from app.errors import CommitStateUnknown, NoSuchWarehouse, WarehouseExists, WarehouseNotEmpty


class Layout(StrEnum):
    """Where the pointers of a warehouse are; it never changes."""

    CATALOG = "catalog"
    """In rows of the database."""
    HADOOP = "hadoop"
    """In the names of metadata files: its tables are file-system tables, which Iceberg calls Hadoop tables."""


@dataclass(frozen=True, slots=True)
class Warehouse:
    """One warehouse; the mappings must not be changed."""

    id: int
    name: str
    root_location: str
    default_properties: Mapping[str, str]
    override_properties: Mapping[str, str]
    storage: Mapping[str, str]
    layout: Layout = Layout.CATALOG


KEPT_S: Final = 1.0
"""How long what other processes change in warehouses may go unseen, where many requests ask for them."""
_COLUMNS = [rows.c[field.name] for field in fields(Warehouse)]


class Warehouses:
    """The warehouses of this catalog."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: dict[Layout, tuple[float, Sequence[Warehouse]]] = {}

    def create(
        self,
        name: str,
        root_location: str,
        *,
        default_properties: Mapping[str, str] | None = None,
        override_properties: Mapping[str, str] | None = None,
        storage: Mapping[str, str] | None = None,
        layout: Layout = Layout.CATALOG,
        created_ms: int,
        author: Author | None = None,
    ) -> Warehouse:
        """Add a warehouse.

        Raises:
            WarehouseExists: the name is taken.
        """
        values = _as_text(
            default_properties=default_properties or {},
            override_properties=override_properties or {},
            storage=storage or {},
        )
        statement = (
            insert(rows)
            .values(name=name, root_location=root_location, layout=layout, created_ms=created_ms, **values)
            .returning(*_COLUMNS)
        )

        def create(connection: Connection) -> Warehouse:
            _note(connection, author, name, "created")
            return _warehouse(connection.execute(statement).one())

        try:
            return self._database.write(create)
        except ConstraintBroken as error:
            raise WarehouseExists(name) from error
        finally:
            self._kept.clear()

    def find(self, name: str) -> Warehouse | None:
        """Return the warehouse of this name, if there is one."""
        query = select(*_COLUMNS).where(rows.c.name == name)
        row = self._database.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else _warehouse(row)

    def find_by_id(self, warehouse_id: int) -> Warehouse | None:
        """Return the warehouse of this id, if there is one."""
        query = select(*_COLUMNS).where(rows.c.id == warehouse_id)
        row = self._database.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else _warehouse(row)

    def update(
        self, name: str, change: Callable[[Warehouse], Warehouse], author: Author | None = None
    ) -> Warehouse:
        """Change the mappings of a warehouse, and return it as it then is.

        Of two updates at once the second is given what the first has made.

        Args:
            name: the warehouse's name.
            change: from the warehouse as it is to how it is to be; may be called again. What it raises ends the
                update, with nothing changed.
            author: whose receipt is written.

        Raises:
            NoSuchWarehouse: no warehouse has this name.
        """
        query = select(*_COLUMNS).where(rows.c.name == name).with_for_update()

        def update_row(connection: Connection) -> Warehouse:
            row = connection.execute(query).one_or_none()
            if row is None:
                raise NoSuchWarehouse(name)
            wanted = change(_warehouse(row))
            values = _as_text(
                default_properties=wanted.default_properties,
                override_properties=wanted.override_properties,
                storage=wanted.storage,
            )
            changed = update(rows).where(rows.c.id == row.id).values(**values).returning(*_COLUMNS)
            _note(connection, author, name, "updated")
            return _warehouse(connection.execute(changed).one())

        try:
            return self._database.write(update_row)
        finally:
            self._kept.clear()

    def drop(
        self,
        name: str,
        author: Author | None = None,
        check: Callable[[Warehouse], None] = lambda _warehouse: None,
    ) -> None:
        """Remove an empty warehouse, and what could come back in it; its pointer history stays.

        Args:
            name: the warehouse's name.
            author: whose receipt is written.
            check: is given the warehouse as it is when it goes. What it raises keeps it.

        Raises:
            NoSuchWarehouse: no warehouse has this name.
            WarehouseNotEmpty: it has namespaces, or files that are still to be deleted.
        """
        self._forget_most(name, check)
        warehouse_id = select(rows.c.id).where(rows.c.name == name).scalar_subquery()
        forget_finished = delete(file_deletions).where(
            file_deletions.c.warehouse_id == warehouse_id, file_deletions.c.state != "queued"
        )
        statement = delete(rows).where(rows.c.name == name).returning(rows.c.id)

        def drop(connection: Connection) -> None:
            there = connection.execute(
                select(*_COLUMNS).where(rows.c.name == name).with_for_update()
            ).one_or_none()
            if there is not None:
                check(_warehouse(there))
            connection.execute(forget_finished)
            gone = connection.execute(statement).one_or_none()
            if gone is None:
                raise NoSuchWarehouse(name)
            # Only now: dropping its last namespace may have come between.
            connection.execute(delete(dropped).where(dropped.c.warehouse_id == gone.id))
            _note(connection, author, name, "dropped")

        try:
            self._database.write(drop)
        except ConstraintBroken as error:
            raise WarehouseNotEmpty(name) from error
        finally:
            self._kept.clear()

    def _forget_most(self, name: str, check: Callable[[Warehouse], None]) -> None:
        """Delete finished deletions of a warehouse that can go, between which others write.

        If the warehouse stays after all, they were those of tables that can come back no more. The rest goes with it.
        """
        found = self.find(name)
        if found is None:
            return
        check(found)
        entries, others = file_deletions, file_deletions.alias("others")
        is_over = (
            entries.c.warehouse_id == found.id,
            entries.c.state != "queued",
            ~exists().where(namespaces.c.warehouse_id == found.id),
            ~exists().where(others.c.warehouse_id == found.id, others.c.state == "queued"),
            ~exists().where(dropped.c.pointer_id == entries.c.pointer_id),
        )
        with suppress(CommitStateUnknown):
            delete_in_batches(self._database, entries.c.id, *is_over)

    def list(self, *layouts: Layout) -> Sequence[Warehouse]:
        """Return all warehouses, or those of some layouts, by name."""
        query = select(*_COLUMNS).where(rows.c.layout.in_(tuple(layouts or Layout))).order_by(rows.c.name)
        found = self._database.read(lambda connection: connection.execute(query).all())
        return [_warehouse(row) for row in found]

    def list_after(self, after: str | None, limit: int | None) -> Sequence[Warehouse]:
        """Return up to `limit` warehouses by name: all, or those with a greater name than `after`.

        Like `list` without those whose layout only a newer build knows.
        """
        found_here = rows.c.layout.in_(tuple(Layout)), rows.c.name > (after or "")
        query = select(*_COLUMNS).where(*found_here).order_by(rows.c.name).limit(limit)
        found = self._database.read(lambda connection: connection.execute(query).all())
        return [_warehouse(row) for row in found]

    def list_kept(self, layout: Layout) -> Sequence[Warehouse]:
        """Return the warehouses of a layout, as they were a second ago at most.

        What this process changes counts at once.
        """
        now_s = time.monotonic()
        kept = self._kept.get(layout)
        if kept is None or now_s - kept[0] >= KEPT_S:
            kept = self._kept[layout] = now_s, self.list(layout)
        return kept[1]

    def roots(self) -> Sequence[tuple[str, str]]:
        """Return name and root location of all warehouses, by name."""
        query = select(rows.c.name, rows.c.root_location).order_by(rows.c.name)
        found = self._database.read(lambda connection: connection.execute(query).all())
        return [(name, root) for name, root in found]

    def list_page(self, after_id: int, limit: int) -> Sequence[Warehouse]:
        """Return up to `limit` warehouses with ids above `after_id`, in their order."""
        query = select(*_COLUMNS).where(rows.c.id > after_id).order_by(rows.c.id).limit(limit)
        found = self._database.read(lambda connection: connection.execute(query).all())
        return [_warehouse(row) for row in found]


def _note(connection: Connection, author: Author | None, name: str, event: str) -> None:
    if author is not None:
        insert_landed(connection, author.receipts_of(LandedChange("warehouse", event, name=name)))


def _warehouse(row: Row[*tuple[Any, ...]]) -> Warehouse:
    warehouse_id, name, root_location, *mappings, layout = row
    defaults, overrides, storage = map(json.loads, mappings)
    return Warehouse(warehouse_id, name, root_location, defaults, overrides, storage, Layout(layout))


def _as_text(**mappings: Mapping[str, str]) -> dict[str, str]:
    """Return mappings as they are stored."""
    return {column: json.dumps(dict(value)) for column, value in mappings.items()}

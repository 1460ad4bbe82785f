"""A source whose rows are read directly: the SQL catalogs of Java, Python and Rust."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, Table, and_, create_engine, delete, inspect, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool
from sqlalchemy.sql.elements import ColumnElement

from app.engine.model.identifiers import Namespace, TableIdentifier
from app.moving.sources import Entry, SourceFailed, SourceMoved

_TABLES, _PROPERTIES = "iceberg_tables", "iceberg_namespace_properties"
_MINIMAL = "exists"
"""Property of namespaces that have no other, so that they have a row."""


class SqlSource:
    """The tables of one catalog in a database; several catalogs may share it."""

    drop_obstacle = None
    has_entries = True
    shows_default_locations = False
    warnings = ()

    def __init__(self, url: str, catalog_name: str | None = None) -> None:
        """Open the database, and find the catalog in it.

        Args:
            url: of SQLAlchemy, `sqlite:///…` or `postgresql://…`, or what Java has after `jdbc:`.
            catalog_name: what the catalog's clients call it; may be left out if there is one only.

        Raises:
            SourceFailed: there is no such database or catalog, or there are several catalogs.
        """
        parsed = _url(url)
        self._engine = create_engine(
            parsed, poolclass=NullPool if parsed.drivername.startswith("sqlite") else None
        )
        with self._reading() as connection:
            self._tables = _found_table(connection, _TABLES)
            if self._tables is None:
                raise SourceFailed(f"{_shown(parsed)} has no table {_TABLES}: it is no SQL catalog")
            self._properties = _found_table(connection, _PROPERTIES)
            self._catalog_name = self._chosen(connection, catalog_name)
        self.name = f"{_shown(parsed)}#{self._catalog_name}"

    def namespaces(self) -> Iterator[Namespace]:
        with self._reading() as connection:
            column = self._of("table_namespace")
            found = _texts(column, connection.scalars(select(column).where(self._is_ours()).distinct()))
            if self._properties is not None:
                column, ours = _column(self._properties, "namespace"), self._is_ours(self._properties)
                found |= _texts(column, connection.scalars(select(column).where(ours).distinct()))
        yield from sorted(_namespace(text) for text in found if text)

    def properties(self, namespace: Namespace) -> Mapping[str, str]:
        rows = self._properties
        if rows is None:
            return {}
        key, value = _column(rows, "property_key"), _column(rows, "property_value")
        where = and_(self._is_ours(rows), _column(rows, "namespace") == _text(namespace))
        with self._reading() as connection:
            found = connection.execute(select(key, value).where(where)).all()
        return {name: text for name, text in found if name != _MINIMAL and text is not None}

    def entries(self, namespace: Namespace) -> Iterator[Entry]:
        kind = next((column for column in self._rows.columns if column.name.lower() == "iceberg_type"), None)
        columns = [self._of("table_name"), *([] if kind is None else [kind])]
        where = and_(self._is_ours(), self._of("table_namespace") == _text(namespace))
        with self._reading() as connection:
            found = connection.execute(select(*columns).where(where).order_by(columns[0])).all()
        for name, *kinds in found:
            _texts(columns[0], [name])
            # Before version V1 of these tables there were no views, and no kind.
            is_view = bool(kinds) and str(kinds[0] or "").upper() == "VIEW"
            yield Entry(TableIdentifier(namespace, name), "view" if is_view else "table")

    def find_location(self, entry: Entry) -> str | None:
        with self._reading() as connection:
            found = connection.execute(
                select(self._of("metadata_location")).where(self._is(entry))
            ).one_or_none()
        if found is None:
            return None
        if not found[0]:
            raise SourceFailed(f"The row of {entry.identifier} names no metadata file")
        return str(found[0])

    def find_uuid(self, entry: Entry) -> str | None:  # noqa: ARG002 - it is in metadata files, which the target reads
        return None

    def identity(self, entry: Entry, location: str) -> str | None:  # noqa: ARG002 - it does not say
        return None

    def drop(self, entry: Entry, location: str) -> str | None:
        gone = delete(self._rows).where(self._is(entry), self._of("metadata_location") == location)
        with self._reading() as connection:
            if connection.execute(gone).rowcount:
                connection.commit()
                return location
        if self.find_location(entry) is None:
            return None
        raise SourceMoved(f"{entry.identifier} has moved on at {self.name}")

    def mark(self, entry: Entry, properties: Mapping[str, str]) -> bool:  # noqa: ARG002 - a property is a metadata file
        return False

    def close(self) -> None:
        """Close the connections to the database."""
        self._engine.dispose()

    def _chosen(self, connection: Connection, wanted: str | None) -> str:
        column = self._of("catalog_name")
        named: set[object] = set(connection.scalars(select(column).distinct()))
        if self._properties is not None:
            named |= set(connection.scalars(select(_column(self._properties, "catalog_name")).distinct()))
        found = {name for name in named if isinstance(name, str)}  # No client asks for others.
        names = ", ".join(sorted(found)) or "none"
        if wanted is not None:
            if wanted not in found:
                raise SourceFailed(f"No catalog is called {wanted} in the database: there are {names}")
            return wanted
        if len(found) != 1:
            raise SourceFailed(f"The database has these catalogs: {names}. Name one")
        return found.pop()

    @property
    def _rows(self) -> Table:
        assert self._tables is not None
        return self._tables

    def _of(self, name: str) -> Column[str]:
        return _column(self._rows, name)

    def _is_ours(self, rows: Table | None = None) -> ColumnElement[bool]:
        return _column(self._rows if rows is None else rows, "catalog_name") == self._catalog_name

    def _is(self, entry: Entry) -> ColumnElement[bool]:
        in_namespace = self._of("table_namespace") == _text(entry.identifier.namespace)
        return and_(self._is_ours(), in_namespace, self._of("table_name") == entry.identifier.name)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise SourceFailed(f"The database of the SQL catalog failed: {reason}") from error


def _url(text: str) -> URL:
    plain = text.removeprefix("jdbc:")
    if plain.startswith("sqlite:") and not plain.startswith("sqlite://"):
        plain = f"sqlite:///{plain.removeprefix('sqlite:')}"
    try:
        url = make_url(plain)
    except (ArgumentError, ValueError) as error:
        raise SourceFailed("That is not the URL of a database: sqlite:///… and postgresql://… are") from error
    if "@" in (url.host or ""):
        # Else an error about this host would show the end of the password.
        raise SourceFailed("The URL of the database has two @; write %40 for the one in the password")
    # Which driver another program uses does not matter here.
    if url.get_backend_name() in {"postgresql", "postgres"}:
        return url.set(drivername="postgresql+psycopg")
    if url.drivername.startswith("sqlite") and (not url.database or not Path(url.database).is_file()):
        # SQLite would make an empty one.
        raise SourceFailed(f"There is no SQLite database at {url.database or 'an empty path'}")
    if not url.drivername.startswith("sqlite"):
        raise SourceFailed(f"A database of {url.drivername} cannot be read: SQLite and Postgres can")
    return url


def _shown(url: URL) -> str:
    """Return a URL as anyone may see it; Java has the password among the parameters."""
    return url.difference_update_query(("password", "sslpassword")).render_as_string()


def _found_table(connection: Connection, name: str) -> Table | None:
    """Return a table by its name in any case: some databases fold names to upper case."""
    found = [other for other in inspect(connection).get_table_names() if other.lower() == name]
    return Table(found[0], MetaData(), autoload_with=connection) if found else None


def _column(rows: Table, name: str) -> Column[str]:
    try:
        return next(column for column in rows.columns if column.name.lower() == name)
    except StopIteration as error:
        raise SourceFailed(
            f"Table {rows.name} has no column {name}: it is not that of a SQL catalog"
        ) from error


def _texts(column: Column[str], values: Iterable[object]) -> set[str]:
    """Return the values of a column; SQLite keeps values of any type in any column.

    Raises:
        SourceFailed: one is not text.
    """
    found = set()
    for value in values:
        if not isinstance(value, str):
            raise SourceFailed(
                f"A row of {column.table} has {str(value)[:50]!r} as its {column.name}, which is no text"
            )
        found.add(value)
    return found


def _namespace(text: str) -> Namespace:
    # A dot inside a level looks like one between levels: these catalogs join levels by dots.
    return Namespace(tuple(text.split(".")))


def _text(namespace: Namespace) -> str:
    return ".".join(namespace.levels)

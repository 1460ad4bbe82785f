"""A source that Spark mounts: any catalog of Iceberg, read by SQL alone."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.upkeep.sql_text import literal, quoted
from app.maintenance.spark.spark_failures import SparkFailure, attempted
from app.maintenance.spark.spark_sessions import SqlSession
from app.maintenance.spark.spark_sql import qualified
from app.moving.sources import Entry, SourceFailed, SourceMoved

_PREFIX: Final = "spark.sql.catalog"
_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
_ABSENT = re.compile(r"TABLE_OR_VIEW_NOT_FOUND|SCHEMA_NOT_FOUND|NoSuchTable|NoSuchNamespace|cannot be found")
_NO_VIEWS = re.compile(r"MISSING_CATALOG_ABILITY|not support|ViewCatalog|_LEGACY_ERROR_TEMP", re.IGNORECASE)


class SparkSource:
    """A catalog of a session of Spark."""

    has_entries = True
    shows_default_locations = True

    def __init__(self, session: SqlSession, catalog: str, properties: Mapping[str, str]) -> None:
        """Mount a catalog.

        Args:
            session: one that knows Iceberg.
            catalog: what it is called there.
            properties: its settings, without `spark.sql.catalog.<name>.`; none if the session has it already.
        """
        self.name = f"spark:{catalog}"
        self._session, self._catalog, self._lock = session, catalog, threading.Lock()
        prefix = f"{_PREFIX}.{catalog}"
        settings = {f"{prefix}.{key}": text for key, text in properties.items()}
        if settings:
            # What is must be seen, not what was there half a minute ago.
            settings = {
                prefix: "org.apache.iceberg.spark.SparkCatalog",
                f"{prefix}.cache-enabled": "false",
            } | settings
        for key, text in settings.items():
            session.conf.set(key, text)
        self._kind = self._found_kind()

    @property
    def drop_obstacle(self) -> str | None:
        if self._is_file_system:
            return (
                "A hadoop catalog deletes the folder of a table that is dropped: take it in with fence or look-on, "
                "and let no other writer commit there"
            )
        return None

    @property
    def warnings(self) -> tuple[str, ...]:
        if self._is_file_system:
            return ("A hadoop catalog goes on with the table at its next version, and nothing here sees it",)
        if self._kind.endswith("hivecatalog") or self._kind == "hive":
            return ("The Hive metastore deletes files of a dropped table with external.table.purge=true",)
        return ()

    def namespaces(self) -> Iterator[Namespace]:
        yield from self._below(None)

    def properties(self, namespace: Namespace) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for row in self._rows(f"DESCRIBE NAMESPACE EXTENDED {self._qualified(namespace)}"):
            name, value = str(row[0]), str(row[1] or "")
            if name == "Properties":
                # As `((a,b), (c,d))`: values may have brackets and commas of their own.
                pairs = value.strip().removeprefix("((").removesuffix("))").split("), (")
                found |= {key: text for key, comma, text in (pair.partition(",") for pair in pairs) if comma}
            elif name in {"Comment", "Location"} and value:
                found[name.lower()] = value
        return found

    def entries(self, namespace: Namespace) -> Iterator[Entry]:
        # Spark adds the temporary views of the session, which are in no catalog, to both lists.
        views = {name for _, name, is_temporary in self._views(namespace) if not is_temporary}
        for _, name, is_temporary in self._rows(f"SHOW TABLES IN {self._qualified(namespace)}"):
            if name not in views and not is_temporary:
                yield Entry(TableIdentifier(namespace, name))
        for name in sorted(views):
            yield Entry(TableIdentifier(namespace, name), "view")

    def find_location(self, entry: Entry) -> str | None:
        if entry.kind == "view":
            raise SourceFailed(f"Spark does not say where the metadata file of view {entry.identifier} is")
        log = qualified(self._catalog, entry.identifier, "metadata_log_entries")
        try:
            # A catalog that the session had before may show for half a minute what was.
            self._rows(f"REFRESH TABLE {qualified(self._catalog, entry.identifier)}")
            found = self._rows(f"SELECT file FROM {log}")
        except SourceFailed as failure:
            if _ABSENT.search(str(failure)):
                return None
            raise
        # Rows come in the order of the log, and the current file last. Its time may be earlier than those before it:
        # writers' clocks differ.
        return str(found[-1][0]) if found else None

    def find_uuid(self, entry: Entry) -> str | None:  # noqa: ARG002 - no SQL says it
        return None

    def identity(self, entry: Entry, location: str) -> str | None:  # noqa: ARG002 - it does not say
        return None

    def drop(self, entry: Entry, location: str) -> str | None:
        found = self.find_location(entry)
        if found is None:
            return None
        if found != location:
            raise SourceMoved(f"{entry.identifier} has moved on at {self.name}")
        if self.drop_obstacle is not None:
            raise SourceFailed(self.drop_obstacle)
        self._rows(f"DROP TABLE {qualified(self._catalog, entry.identifier)}")
        return location

    def mark(self, entry: Entry, properties: Mapping[str, str]) -> bool:
        table = qualified(self._catalog, entry.identifier)
        present = {row[0]: row[1] for row in self._rows(f"SHOW TBLPROPERTIES {table}")}
        if any(present.get(key) != value for key, value in properties.items()):
            pairs = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
            self._rows(f"ALTER TABLE {table} SET TBLPROPERTIES ({pairs})")
        return True

    @property
    def _is_file_system(self) -> bool:
        return self._kind.endswith("hadoopcatalog") or self._kind == "hadoop"

    def _below(self, parent: Namespace | None) -> Iterator[Namespace]:
        within = quoted(self._catalog) if parent is None else self._qualified(parent)
        for text, *_ in self._rows(f"SHOW NAMESPACES IN {within}"):
            levels = tuple((first or second).replace("``", "`") for first, second in _PART.findall(text))
            if parent is not None and (
                levels[: len(parent.levels)] != parent.levels or levels == parent.levels
            ):
                continue
            yield Namespace(levels)
            yield from self._below(Namespace(levels))

    def _views(self, namespace: Namespace) -> list[Any]:
        try:
            return self._rows(f"SHOW VIEWS IN {self._qualified(namespace)}")
        except SourceFailed as failure:
            if _NO_VIEWS.search(str(failure)):
                return []
            raise

    def _found_kind(self) -> str:
        """Return what kind of catalog it is, in lower case.

        Spark takes names of settings in any case, and Iceberg their values.
        """
        start = f"{_PREFIX}.{self._catalog}."
        settings = {
            str(key).removeprefix(start).lower(): str(text)
            for key, text in self._rows("SET")
            if str(key).startswith(start)
        }
        return (settings.get("type") or settings.get("catalog-impl") or "").lower()

    def _qualified(self, namespace: Namespace) -> str:
        return ".".join(map(quoted, (self._catalog, *namespace.levels)))

    def _rows(self, statement: str) -> list[Any]:
        """Run a statement; raises `SourceFailed`."""
        with self._lock:
            found = attempted(lambda: self._session.sql(statement).collect())
        if isinstance(found, SparkFailure):
            raise SourceFailed(found.message)
        return found

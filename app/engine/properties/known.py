"""Every property of tables that is known: those of the format, and Icetower's own."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.engine.properties.value_kinds import ValueKind


class Group(StrEnum):
    """What properties are about; the sections of the documentation."""

    READ = "read"
    WRITE = "write"
    COMMIT = "commit"
    HISTORY = "history"
    ENCRYPTION = "encryption"
    COMPATIBILITY = "compatibility"
    VIEW = "view"
    ICETOWER = "icetower"
    UPKEEP = "upkeep"


class Origin(StrEnum):
    """Where a value in force comes from."""

    TABLE = "table"
    NAMESPACE = "namespace"
    WAREHOUSE = "warehouse"
    WAREHOUSE_OVERRIDE = "warehouse-override"
    DEFAULT = "default"
    """The default of the format, or of Icetower for its own."""


OF_TABLE = (Origin.TABLE,)
"""Where properties of the format are looked for: engines read nothing but the table's."""


@dataclass(frozen=True, slots=True)
class KnownProperty:
    """A property that has a meaning."""

    name: str
    """Its name; one per column ends with a dot, and the column's name follows."""
    kind: ValueKind
    default: str | None
    """What holds where it is not set; None if nothing does, or if engines differ."""
    meaning: str
    """One sentence."""
    group: Group
    read_from: tuple[Origin, ...] = OF_TABLE
    """Where it is looked for, strongest first."""

    @property
    def is_per_column(self) -> bool:
        """Whether each column has one of its own."""
        return self.name.endswith(".")

    @property
    def shown_name(self) -> str:
        """Its name as pages show it."""
        return f"{self.name}<column>" if self.is_per_column else self.name

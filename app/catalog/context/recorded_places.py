"""Where what a request has made or let go is, as it is kept under its Idempotency-Key."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.model.ids import Location, TableUuid

_BETWEEN = "\n"
"""No location has it."""


@dataclass(frozen=True, slots=True)
class RecordedPlace:
    """The metadata file of a table or view, and whose it was."""

    location: Location
    uuid: TableUuid | None
    """None if it is not known: an older build recorded it, or the table had none."""

    def to_text(self) -> str:
        """Return it as it is kept."""
        return f"{self.location}{_BETWEEN}{self.uuid}" if self.uuid else self.location

    @staticmethod
    def of_text(text: str) -> RecordedPlace:
        """Read what `to_text` has written."""
        location, _, uuid = text.partition(_BETWEEN)
        return RecordedPlace(Location(location), TableUuid(uuid) if uuid else None)

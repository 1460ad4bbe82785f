"""The policy of a table's upkeep: what `icetower.maintenance.*` says, and where."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.model.jobs import Job
from app.engine.properties.known import Group, Origin
from app.engine.properties.lookup import (
    EffectiveProperty,
    Layers,
    effective_property,
    find_property,
    text_in_force,
)
from app.engine.properties.own_properties import NEAREST, OWN_PROPERTIES, UPKEEP, of_upkeep
from app.engine.properties.value_kinds import windows_of

_LIMITS = ("windows", "daily-bytes")
_THRESHOLDS = (".min-files", ".min-manifests", ".min-snapshots", ".wait-ms")


@dataclass(frozen=True, slots=True)
class Switch:
    """Whether a job is done to a table, and what says so."""

    is_on: bool
    origin: Origin
    said_by: str
    """The property."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What is to be done to a table, and when it is worth it."""

    layers: Layers

    def switch(self, job: Job) -> Switch:
        """Return whether a job is done: the nearest place that says anything decides.

        In one place the job's own property goes before the one for all jobs.
        """
        own = of_upkeep(job)
        for place in NEAREST:
            for name in (own, UPKEEP):
                value = self._sound(place, name)
                if value is not None:
                    is_on = value == "on" or (value == "recommended" and job.is_recommended)
                    return Switch(is_on, place, name)
        return Switch(is_on=False, origin=Origin.DEFAULT, said_by=UPKEEP)

    def without_thresholds(self) -> Policy:
        """Return the same policy, by which any gain is worth it."""
        none = {known.name: "0" for known in OWN_PROPERTIES if known.name.endswith(_THRESHOLDS)}
        return Policy({**self.layers, Origin.TABLE: {**self.layers.get(Origin.TABLE, {}), **none}})

    def number(self, end: str) -> int | None:
        """Return a threshold; None if there is none."""
        text = self.text(end)
        return None if text is None else int(text)

    def ratio(self, end: str) -> float:
        """Return a share that has a default."""
        return float(self.text(end) or 0)

    def text(self, end: str) -> str | None:
        """Return a setting as it is in force; one that makes no sense counts as not set."""
        return text_in_force(self.layers, of_upkeep(end))

    def says(self, end: str) -> bool:
        """Return whether a setting is set anywhere; if not, its default is in force."""
        return effective_property(self.layers, of_upkeep(end)).origin is not Origin.DEFAULT

    def allows(self, now_ms: int) -> bool:
        """Say whether jobs may begin at this moment, by the daily windows."""
        windows = windows_of(self.text("windows") or "") or []
        minute = now_ms // 60_000 % (24 * 60)
        return not windows or any(
            start <= minute < end if start < end else minute >= start or minute < end
            for start, end in windows
        )

    def flaw(self) -> str | None:
        """Return what is wrong with a limit, if something is: without it a job could do too much."""
        for end in _LIMITS:
            found = effective_property(self.layers, of_upkeep(end))
            if found.flaw is not None:
                return f"{found.name} {found.flaw}"
        return None

    def settings(self) -> list[EffectiveProperty]:
        """Return every property of the policy as it is in force."""
        return [
            effective_property(self.layers, known.name)
            for known in OWN_PROPERTIES
            if known.group is Group.UPKEEP
        ]

    def _sound(self, place: Origin, name: str) -> str | None:
        value = self.layers.get(place, {}).get(name)
        known = find_property(name)
        if value is None or known is None or known.kind.flaw(value) is not None:
            return None
        return value.strip().lower()

"""Looking properties up: whether a value makes sense, and which value is in force."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from app.engine.properties.format_properties import FORMAT_PROPERTIES
from app.engine.properties.known import KnownProperty, Origin
from app.engine.properties.own_properties import OWN_NAMES, OWN_PREFIX, OWN_PROPERTIES
from app.errors import InvalidUpdate

KNOWN_PROPERTIES = (*FORMAT_PROPERTIES, *OWN_PROPERTIES)
_SHOWN = 100
"""Characters of a name that are repeated."""
_BY_NAME = {known.name: known for known in KNOWN_PROPERTIES if not known.is_per_column}
_IN_WORDS = {
    Origin.TABLE: "the table",
    Origin.NAMESPACE: "its namespace",
    Origin.WAREHOUSE: "the warehouse's defaults",
    Origin.WAREHOUSE_OVERRIDE: "the warehouse's overrides",
}
_PER_COLUMN = tuple(known for known in KNOWN_PROPERTIES if known.is_per_column)


def find_property(name: str) -> KnownProperty | None:
    """Return what is known of a property; None if the name has no meaning here."""
    return _BY_NAME.get(name) or next(
        (known for known in _PER_COLUMN if name.startswith(known.name) and name != known.name), None
    )


def check_properties(changed: Mapping[str, str]) -> None:
    """Check a table's or a view's properties; those that are not known may have any value.

    But what begins like Icetower's own must be one of them, and one that is looked for on tables.

    Raises:
        InvalidUpdate: names the property, the value, and what is expected.
    """
    flaw = _misplaced(changed, Origin.TABLE) or next(flaws_of(changed), None)
    if flaw is not None:
        raise InvalidUpdate(f"Table property {flaw}")


def flaw_of_inherited(properties: Mapping[str, str], place: Origin) -> str | None:
    """Return what is wrong with what a namespace or a warehouse leaves to its tables, or None.

    Icetower's own must be read from there. Others are checked only if they are: they may mean something else there.
    """
    misplaced = _misplaced(properties, place)
    if misplaced is not None:
        return misplaced
    inherited = {name: value for name, value in properties.items() if _is_read_from(name, place)}
    return next(flaws_of(inherited), None)


def _misplaced(properties: Mapping[str, str], place: Origin) -> str | None:
    """Return which of Icetower's own properties would do nothing in a place; None if all would."""
    for name in properties:
        known = find_property(name)
        if known is not None and name.startswith(OWN_PREFIX) and place not in known.read_from:
            *first, last = (_IN_WORDS[origin] for origin in known.read_from)
            where = f"{', '.join(first)} or {last}" if first else last
            return f"{name} does nothing on a {place}: it is looked for in {where}"
    return None


def _is_read_from(name: str, place: Origin) -> bool:
    known = find_property(name)
    return known is None or place in known.read_from


def flaws_of(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with properties: the name, and what is expected."""
    for name, value in properties.items():
        flaw = _flaw(name, value)
        if flaw is not None:
            yield f"{name[:_SHOWN]} {flaw}"


def _flaw(name: str, value: str) -> str | None:
    known = find_property(name)
    if known is not None:
        return known.kind.flaw(value)
    begins_so = name.lower().startswith(OWN_PREFIX)  # Written otherwise it would do nothing.
    if not begins_so or name in OWN_NAMES:
        return None
    near = get_close_matches(name[:_SHOWN].lower(), OWN_NAMES, n=1)
    return f"is not known; did you mean {near[0]}?" if near else "is not known, and Icetower's own begin so"


@dataclass(frozen=True, slots=True)
class EffectiveProperty:
    """A property of a table as it is in force."""

    name: str
    value: str | None
    """None if it is not set, and nothing holds in its place."""
    origin: Origin
    known: KnownProperty | None
    """None for a name that has no meaning here."""
    flaw: str | None = None
    """What is wrong with it, beginning with "must be" or "is not": it was set before it was checked, or elsewhere."""


Layers = Mapping[Origin, Mapping[str, str]]
"""The properties of the places that a table inherits from, and its own."""


def effective_properties(layers: Layers) -> list[EffectiveProperty]:
    """Return each known property of a table, and each other one that it has, by name."""
    names = {known.name for known in KNOWN_PROPERTIES if not known.is_per_column}
    names.update(layers.get(Origin.TABLE, {}))
    return [effective_property(layers, name) for name in sorted(names)]


def effective_property(layers: Layers, name: str) -> EffectiveProperty:
    """Return one property of a table, as it is in force.

    A value that makes no sense is shown with its flaw; a place further away does not replace it.
    """
    known = find_property(name)
    for origin, value in _settings(layers, name, known.read_from if known else (Origin.TABLE,)):
        return EffectiveProperty(name, value, origin, known, _flaw(name, value))
    return EffectiveProperty(name, known.default if known else None, Origin.DEFAULT, known)


def text_in_force(layers: Layers, name: str) -> str | None:
    """Return the value of a property that is in force.

    One that makes no sense counts as not set.
    """
    found = effective_property(layers, name)
    if found.flaw is None:
        return found.value
    return found.known.default if found.known is not None else None


def _settings(layers: Layers, name: str, places: Sequence[Origin]) -> Iterator[tuple[Origin, str]]:
    for origin in places:
        if name in layers.get(origin, {}):
            yield origin, layers[origin][name]

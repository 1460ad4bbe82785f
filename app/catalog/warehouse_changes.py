"""Changes of a warehouse's properties and storage settings: key by key, or as a whole."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from app.database.warehouses import Warehouse
from app.engine.properties.own_properties import PROTECTED, UNDROP_KEEP, UNDROP_PURGE_WAITS
from app.errors import InvalidRequest, InvalidSetting
from app.fileio.storage_settings import (
    MASK,
    MAY_CHANGE_BESIDE_KEPT_SECRETS,
    holds_secret,
    is_reference,
    is_secret_name,
)

KEEPS_FROM_LOSS: Final = (PROTECTED, UNDROP_KEEP, UNDROP_PURGE_WAITS)
"""Properties that a replacement of all properties never takes away by leaving them out."""


@dataclass(frozen=True, slots=True)
class MappingChange:
    """What is to become of one of a warehouse's mappings."""

    replacement: Mapping[str, str] | None = None
    """All that it is to have; None if single keys are changed."""
    updates: Mapping[str, str] = field(default_factory=dict)
    removals: Collection[str] = ()

    def __bool__(self) -> bool:
        """Say whether anything is asked for."""
        return self.replacement is not None or bool(self.updates or self.removals)


@dataclass(frozen=True, slots=True)
class WarehouseChange:
    """What is to become of a warehouse's mappings."""

    default_properties: MappingChange = MappingChange()
    override_properties: MappingChange = MappingChange()
    storage: MappingChange = MappingChange()

    def apply(self, present: Warehouse) -> Warehouse:
        """Return the warehouse as it is to be.

        A mask that comes back means the secret that it hid.

        Raises:
            InvalidRequest: one mapping is replaced and changed, or one key set and removed.
            InvalidSetting: a replacement leaves out what keeps things from being lost, or a secret that is kept
                would be sent elsewhere.
        """
        return replace(
            present,
            default_properties=_changed_properties(
                "default-properties", self.default_properties, present.default_properties
            ),
            override_properties=_changed_properties(
                "override-properties", self.override_properties, present.override_properties
            ),
            storage=_changed_storage(self.storage, present.storage),
        )


def _changed_properties(name: str, change: MappingChange, present: Mapping[str, str]) -> Mapping[str, str]:
    for key in KEEPS_FROM_LOSS:
        if change.replacement is not None and key in present and key not in change.replacement:
            raise InvalidSetting(
                f"A replacement of {name} has to say what becomes of {key}, which is {present[key]!r} now and keeps "
                "things from being lost: send it too, or set and remove single keys with updates and removals"
            )
    return _changed(name, change, present)


def _changed_storage(change: MappingChange, present: Mapping[str, str]) -> Mapping[str, str]:
    given = change.updates if change.replacement is None else change.replacement
    masked = masked_settings(given, present)
    changed = _changed("storage", change, present)
    if change.replacement is None:
        kept = [key for key in _secret(present) if key in changed and given.get(key, MASK) == MASK]
    else:
        kept = masked
    for key in sorted({*changed, *present} - MAY_CHANGE_BESIDE_KEPT_SECRETS):
        if kept and changed.get(key) != present.get(key) and not is_secret_name(key):
            raise InvalidSetting(
                f"Storage setting {kept[0]} must be given anew: {key} changes, which may decide where the secret "
                "is sent"
            )
    return changed


def masked_settings(given: Mapping[str, str], present: Mapping[str, str]) -> list[str]:
    """Return the storage settings that are given as a mask.

    Raises:
        InvalidSetting: one of them has no value that the mask could hide.
    """
    masked = sorted(key for key, value in given.items() if value == MASK)
    for key in masked:
        if key not in present:
            raise InvalidSetting(
                f"Storage setting {key} is masked, and there is no value that the mask could hide"
            )
    return masked


def _secret(storage: Mapping[str, str]) -> Iterator[str]:
    """Yield the settings whose values are secrets, or are read from the environment."""
    return (key for key in sorted(storage) if holds_secret(key, storage[key]) or is_reference(storage[key]))


def _changed(name: str, change: MappingChange, present: Mapping[str, str]) -> Mapping[str, str]:
    if change.replacement is not None and (change.updates or change.removals):
        raise InvalidRequest(f"{name} can be replaced, or changed key by key, not both in one request")
    both = sorted(change.updates.keys() & set(change.removals))
    if both:
        raise InvalidRequest(f"Cannot both set and remove {name}: {', '.join(both)[:500]}")
    given = change.updates if change.replacement is None else change.replacement
    before = present if change.replacement is None else {}
    changed = {
        **before,
        **{key: present.get(key, value) if value == MASK else value for key, value in given.items()},
    }
    return {key: value for key, value in changed.items() if key not in change.removals}

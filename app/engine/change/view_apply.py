"""Applying updates to a view, and the first metadata of a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.engine.change import updates as u
from app.engine.change.edits.snapshots import CLOCK_LEAD_MS, is_too_far_ahead
from app.engine.change.edits.table_schemas import NO_SCHEMA_ADDED
from app.engine.change.numbering import (
    LAST_ADDED,
    NumberedItems,
    check_chosen_id,
    named_id,
    numbered_schemas,
    numbered_versions,
)
from app.engine.change.requirements import Report, raise_refusal
from app.engine.model.ids import Location, SchemaId, TableUuid
from app.engine.model.schema import Schema, check_schema
from app.engine.model.settings import properties as props
from app.engine.model.view_metadata import VIEW_FORMAT_VERSION, VersionLogEntry, ViewMetadata, ViewVersion
from app.engine.properties.lookup import check_properties
from app.errors import ClockBehind, InvalidUpdate, InvalidViewVersion

DEFAULT_HISTORY_ENTRIES = 10


@dataclass(slots=True)
class ViewDraft:
    """A view that updates are applied to."""

    base: ViewMetadata | None
    now_ms: int
    view_uuid: TableUuid | None = None
    location: Location | None = None
    schemas: NumberedItems[Schema] = field(default_factory=numbered_schemas)
    versions: NumberedItems[ViewVersion] = field(default_factory=numbered_versions)
    current_version_id: int | None = None
    version_log: list[VersionLogEntry] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    unknown_fields: dict[str, Any] = field(default_factory=dict)

    has_changes: bool = False
    last_added_schema_id: SchemaId | None = None
    last_added_version_id: int | None = None
    sent_times_ms: dict[int, int] = field(default_factory=dict)
    """The `timestamp-ms` of each version that the updates have, new or not."""
    added_version_ids: set[int] = field(default_factory=set)

    def finish(self) -> ViewMetadata:
        """Return the new metadata, complete and checked.

        Raises:
            InvalidUpdate: something is missing, or a replaced query would lose a dialect.
        """
        if self.view_uuid is None:
            raise InvalidUpdate("The view has no uuid: the updates need an assign-uuid")
        if self.location is None:
            raise InvalidUpdate("The view has no location: the updates need a set-location")
        current = self.versions.find(self.current_version_id)
        if current is None:
            raise InvalidUpdate("Invalid view: no versions were added")
        self._check_dialects(current)
        kept = self._kept_version_ids(current.version_id)
        return ViewMetadata.model_construct(
            view_uuid=self.view_uuid,
            format_version=VIEW_FORMAT_VERSION,
            location=self.location,
            schemas=tuple(self.schemas),
            current_version_id=current.version_id,
            versions=tuple(version for version in self.versions if version.version_id in kept),
            version_log=self._next_log(current, kept),
            properties=dict(self.properties),
        ).with_unknown_fields(self.unknown_fields)

    def _check_dialects(self, current: ViewVersion) -> None:
        if self.base is None:
            return
        if props.bool_property(self.properties, props.VIEW_DROP_DIALECT_ALLOWED, default=False):
            return
        before, after = self.base.current_version.dialects, current.dialects
        if before - after:
            raise InvalidUpdate(
                "Cannot replace view due to loss of view dialects "
                f"({props.VIEW_DROP_DIALECT_ALLOWED}=false): previous dialects {sorted(before)}, "
                f"new dialects {sorted(after)}"
            )

    def _kept_version_ids(self, current_id: int) -> frozenset[int]:
        wanted = props.int_property(self.properties, props.VIEW_HISTORY_ENTRIES, DEFAULT_HISTORY_ENTRIES)
        if wanted < 1:
            raise InvalidUpdate(f"{props.VIEW_HISTORY_ENTRIES} must be positive but was {wanted}")
        count = max(wanted, len({*self.added_version_ids, current_id}))
        if len(self.versions) <= count:
            return self.versions.ids
        newest = sorted(self.versions.ids - {current_id}, reverse=True)
        return frozenset({current_id, *newest[: count - 1]})

    def _next_log(self, current: ViewVersion, kept: frozenset[int]) -> tuple[VersionLogEntry, ...]:
        log = self.version_log
        if self.base is None or current.version_id != self.base.current_version_id:
            # Also where the view had this version before: sent again, the request is known by its time.
            time_ms = self.sent_times_ms.get(current.version_id, self.now_ms)
            log = [*log, VersionLogEntry(timestamp_ms=time_ms, version_id=current.version_id)]
        if len(kept) == len(self.versions):
            return tuple(log)
        # The log must not have gaps, so entries before a dropped version are dropped too.
        gaps = [position for position, entry in enumerate(log, 1) if entry.version_id not in kept]
        return tuple(log[max(gaps, default=0) :])


def apply_view_updates(
    base: ViewMetadata, updates: Sequence[u.Update], now_ms: int, report: Report = raise_refusal
) -> ViewDraft:
    """Return a draft of the base with every update applied, in order.

    Raises:
        InvalidUpdate: an update that cannot be applied, or is for tables.
        ClockBehind: the version's time makes no sense here, but neither does the view's.
    """
    draft = ViewDraft(
        base=base,
        now_ms=now_ms,
        view_uuid=base.view_uuid,
        location=base.location,
        schemas=numbered_schemas(base.schemas),
        versions=numbered_versions(base.versions),
        current_version_id=base.current_version_id,
        version_log=list(base.version_log),
        properties=dict(base.properties),
        unknown_fields=dict(base.unknown_fields),
    )
    for position, update in enumerate(updates):
        _apply(draft, update)
        report(position, None)
    return draft


def new_view_metadata(
    *,
    schema: Schema,
    version: ViewVersion,
    location: Location,
    properties: Mapping[str, str],
    uuid: TableUuid,
    now_ms: int,
) -> ViewMetadata:
    """Return the metadata of a new view. The schema gets id 0, the version keeps its id.

    Raises:
        InvalidUpdate: the schema, version or a property cannot be used.
    """
    check_properties(properties)
    draft = ViewDraft(
        base=None, now_ms=now_ms, view_uuid=uuid, location=location, properties=dict(properties)
    )
    _add_schema(draft, schema)
    _add_version(draft, version.replace(schema_id=SchemaId(LAST_ADDED)))
    _set_current_version(draft, LAST_ADDED)
    return draft.finish()


def _apply(draft: ViewDraft, update: u.Update) -> None:
    match update:
        case u.AssignUuid(uuid=uuid):
            if draft.view_uuid is not None and uuid.lower() != draft.view_uuid.lower():
                raise InvalidUpdate(
                    f"Cannot reassign uuid: the view has {draft.view_uuid}, the update says {uuid}"
                )
        case u.UpgradeFormatVersion(format_version=version):
            if version < VIEW_FORMAT_VERSION:
                raise InvalidUpdate(f"Cannot downgrade v{VIEW_FORMAT_VERSION} view to v{version}")
            if version > VIEW_FORMAT_VERSION:
                raise InvalidUpdate(
                    f"Cannot upgrade view to unsupported format version: v{version} (supported: v{VIEW_FORMAT_VERSION})"
                )
        case u.AddSchema(schema_=schema):
            _add_schema(draft, schema)
        case u.AddViewVersion(view_version=version_to_add):
            _add_version(draft, version_to_add)
        case u.SetCurrentViewVersion(view_version_id=version_id):
            _set_current_version(draft, version_id)
        case u.SetLocation(location=location):
            draft.has_changes |= location != draft.location
            draft.location = location
        case u.SetProperties(updates=changed):
            check_properties(changed)
            draft.properties.update(changed)
            draft.has_changes |= bool(changed)
        case u.RemoveProperties(removals=removals):
            for name in removals:
                draft.properties.pop(name, None)
            draft.has_changes |= bool(removals)
        case _:
            raise InvalidUpdate(f"Cannot apply {update.action} to a view: it is for tables")


def _add_schema(draft: ViewDraft, schema: Schema) -> None:
    check_schema(schema)
    equal = draft.schemas.find_equal(schema)
    if equal is None:
        equal = draft.schemas.add(schema.with_id(draft.schemas.next_id()))
        draft.has_changes = True
    draft.last_added_schema_id = equal.schema_id


def _add_version(draft: ViewDraft, version: ViewVersion) -> None:
    # Compared as sent: `LAST_ADDED` is not an id, so a version that is sent with it is always new.
    equal = draft.versions.find_equal(version)
    schema_id = named_id(version.schema_id, draft.last_added_schema_id, NO_SCHEMA_ADDED)
    if schema_id not in draft.schemas:
        raise InvalidUpdate(f"Cannot add version with unknown schema: {schema_id}")
    version = version.replace(schema_id=schema_id)
    _check_representations(version)
    if equal is None:
        _check_time(draft, version)
        # The id that was sent is kept if it is higher than all others.
        last_id = draft.versions.highest_id or 0
        check_chosen_id(version.version_id, last_id, 1, "a view version")
        is_free = version.version_id > last_id
        free_id = version.version_id if is_free else draft.versions.next_id()
        equal = draft.versions.add(version.replace(version_id=free_id))
        draft.added_version_ids.add(equal.version_id)
        draft.has_changes = True
    draft.last_added_version_id = equal.version_id
    if not is_too_far_ahead(version.timestamp_ms, draft.now_ms):
        draft.sent_times_ms[equal.version_id] = version.timestamp_ms


def _check_time(draft: ViewDraft, version: ViewVersion) -> None:
    if is_too_far_ahead(version.timestamp_ms, draft.now_ms):
        changed_ms = draft.version_log[-1].timestamp_ms if draft.version_log else 0
        if changed_ms > draft.now_ms:
            raise ClockBehind(draft.now_ms, changed_ms)
        # The view's history would say that it is from then, and later versions from before.
        raise InvalidUpdate(
            f"Cannot add view version {version.version_id}: timestamp-ms {version.timestamp_ms} is more than a day "
            f"ahead of {draft.now_ms}; the highest allowed is {draft.now_ms + CLOCK_LEAD_MS}"
        )


def _check_representations(version: ViewVersion) -> None:
    seen: set[str] = set()
    for item in version.representations:
        if item.type.lower() != "sql":
            continue
        if not item.sql or not item.dialect:
            raise InvalidUpdate("Invalid view version: a sql representation needs sql and dialect")
        if item.dialect.lower() in seen:
            raise InvalidViewVersion(
                f"Invalid view version: Cannot add multiple queries for dialect {item.dialect.lower()}"
            )
        seen.add(item.dialect.lower())
    if not version.representations:
        raise InvalidUpdate("Invalid view version: it has no representations")


def _set_current_version(draft: ViewDraft, version_id: int) -> None:
    version_id = named_id(
        version_id,
        draft.last_added_version_id,
        "Cannot set last version id: no current version id has been set",
    )
    if version_id not in draft.versions:
        raise InvalidUpdate(f"Cannot set current version to unknown version: {version_id}")
    draft.has_changes |= version_id != draft.current_version_id
    draft.current_version_id = version_id

"""Our engine behind the same questions as the reference, so that both can be asked alike."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic import TypeAdapter, ValidationError

from app.engine.change import requirements as needs
from app.engine.change.apply import apply_to_new, apply_update, apply_updates
from app.engine.change.draft import MetadataDraft, draft_of
from app.engine.change.initial import new_table_metadata
from app.engine.change.updates import Update
from app.engine.change.view_apply import apply_view_updates, new_view_metadata
from app.engine.model.ids import Location, TableUuid
from app.engine.model.partition_spec import UnboundPartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.sort_order import SortOrder
from app.engine.model.table_metadata import read_table_metadata
from app.engine.model.view_metadata import ViewVersion, read_view_metadata
from app.errors import CommitFailed, IcetowerError
from tests.builders import derived_requirements
from tests.conformance.oracle.outcomes import Accepted, Json, Outcome, Refused

_UPDATE: TypeAdapter[Update] = TypeAdapter(Update)
_REQUIREMENT: TypeAdapter[needs.Requirement] = TypeAdapter(needs.Requirement)


def _refused(error: IcetowerError | ValidationError, step: str) -> Refused:
    return Refused(str(error), step, is_conflict=isinstance(error, CommitFailed))


def parse_updates(updates: Sequence[Json]) -> list[Update] | Refused:
    """Parse updates one by one, so that a refusal says which."""
    parsed: list[Update] = []
    for position, update in enumerate(updates):
        try:
            parsed.append(_UPDATE.validate_json(json.dumps(update).encode(), by_alias=True, by_name=False))
        except ValidationError as error:
            return _refused(error, f"parse {position}")
    return parsed


def read_table(document: Json) -> Outcome:
    """Parse table metadata and write it again."""
    try:
        return Accepted(read_table_metadata(json.dumps(document).encode()).to_object())
    except IcetowerError as error:
        return _refused(error, "base")


def commit(base: Json, location: str, updates: Sequence[Json], now_ms: int) -> Outcome:
    """Apply updates to a table whose metadata file is at the location."""
    try:
        metadata = read_table_metadata(json.dumps(base).encode())
    except IcetowerError as error:
        return _refused(error, "base")
    parsed = parse_updates(updates)
    if isinstance(parsed, Refused):
        return parsed
    stepwise = _apply_one_by_one(draft_of(metadata, now_ms), parsed)
    if isinstance(stepwise, Refused):
        return stepwise
    try:
        draft = apply_updates(metadata, parsed, now_ms)
        if not draft.has_changes:
            return Accepted(metadata.to_object(), has_changes=False)
        return Accepted(draft.finish(Location(location)).to_object())
    except IcetowerError as error:
        return _refused(error, "build")


def create(updates: Sequence[Json], now_ms: int) -> Outcome:
    """Make a table of updates alone."""
    parsed = parse_updates(updates)
    if isinstance(parsed, Refused):
        return parsed
    try:
        return Accepted(apply_to_new(parsed, now_ms).finish(None).to_object())
    except IcetowerError as error:
        return _refused(error, "build")


def _apply_one_by_one(draft: MetadataDraft, updates: Sequence[Update]) -> Refused | None:
    for position, update in enumerate(updates):
        try:
            apply_update(draft, update)
        except IcetowerError as error:
            return _refused(error, f"apply {position}")
    return None


def new_table(
    schema: Json,
    spec: Json | None,
    order: Json | None,
    location: str,
    properties: Mapping[str, str],
    uuid: str,
    now_ms: int,
) -> Outcome:
    """Make a table as one create request does."""
    try:
        metadata = new_table_metadata(
            schema=Schema.from_object(schema),
            spec=None if spec is None else UnboundPartitionSpec.from_object(spec),
            order=None if order is None else SortOrder.from_object(order),
            location=Location(location),
            properties=properties,
            uuid=TableUuid(uuid),
            now_ms=now_ms,
        )
        return Accepted(metadata.to_object())
    except (IcetowerError, ValidationError) as error:
        return _refused(error, "build")


def parse_requirements(requirements: Sequence[Json]) -> list[needs.Requirement] | Refused:
    """Parse requirements one by one."""
    parsed: list[needs.Requirement] = []
    for position, requirement in enumerate(requirements):
        try:
            item = _REQUIREMENT.validate_json(json.dumps(requirement).encode(), by_alias=True, by_name=False)
        except ValidationError as error:
            return _refused(error, f"parse {position}")
        parsed.append(item)
    return parsed


def check_requirements(base: Json, requirements: Sequence[Json]) -> Outcome:
    """Check requirements against a table."""
    metadata = read_table_metadata(json.dumps(base).encode())
    parsed = parse_requirements(requirements)
    if isinstance(parsed, Refused):
        return parsed
    for position, requirement in enumerate(parsed):
        try:
            needs.check_requirements(metadata, [requirement])
        except IcetowerError as error:
            return _refused(error, f"check {position}")
    return Accepted(base)


def check_view_requirements(base: Json, requirements: Sequence[Json]) -> Outcome:
    """Check requirements against a view."""
    metadata = read_view_metadata(json.dumps(base).encode())
    parsed = parse_requirements(requirements)
    if isinstance(parsed, Refused):
        return parsed
    for position, requirement in enumerate(parsed):
        try:
            needs.check_view_requirements(metadata, [requirement])
        except IcetowerError as error:
            return _refused(error, f"check {position}")
    return Accepted(base)


def requirements_for(base: Json | None, updates: Sequence[Json]) -> list[Json]:
    """Derive what a writer of these updates must demand."""
    parsed = parse_updates(updates)
    assert not isinstance(parsed, Refused), parsed
    metadata = None if base is None else read_table_metadata(json.dumps(base).encode())
    derived = derived_requirements.requirements_for(metadata, parsed)
    return [item.model_dump(mode="json") for item in derived]


def read_view(document: Json) -> Outcome:
    """Parse view metadata and write it again."""
    try:
        return Accepted(read_view_metadata(json.dumps(document).encode()).to_object())
    except IcetowerError as error:
        return _refused(error, "base")


def commit_view(base: Json, updates: Sequence[Json], now_ms: int) -> Outcome:
    """Apply updates to a view."""
    try:
        metadata = read_view_metadata(json.dumps(base).encode())
    except IcetowerError as error:
        return _refused(error, "base")
    parsed = parse_updates(updates)
    if isinstance(parsed, Refused):
        return parsed
    for length in range(1, len(parsed) + 1):
        try:
            apply_view_updates(metadata, parsed[:length], now_ms)
        except IcetowerError as error:
            return _refused(error, f"apply {length - 1}")
    try:
        draft = apply_view_updates(metadata, parsed, now_ms)
        if not draft.has_changes:
            return Accepted(metadata.to_object(), has_changes=False)
        return Accepted(draft.finish().to_object())
    except IcetowerError as error:
        return _refused(error, "build")


def new_view(
    schema: Json, version: Json, location: str, properties: Mapping[str, str], uuid: str, now_ms: int
) -> Outcome:
    """Make a view as one create request does."""
    try:
        metadata = new_view_metadata(
            schema=Schema.from_object(schema),
            version=ViewVersion.from_object(version),
            location=Location(location),
            properties=properties,
            uuid=TableUuid(uuid),
            now_ms=now_ms,
        )
        return Accepted(metadata.to_object())
    except (IcetowerError, ValidationError) as error:
        return _refused(error, "build")

"""Plan tasks as signed tokens: any server can go on with the rest of a scan."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from app.catalog.context.catalog import Catalog
from app.database.pointers.pointer import Pointer
from app.engine.expressions.expression_json import parse_expression, to_json
from app.engine.model.ids import FieldId, SnapshotId
from app.engine.model.table_metadata import TableMetadata
from app.engine.scan.scan_scope import ScanScope, is_whole_range
from app.engine.selection.files import RowFilter
from app.errors import InvalidFilter, NoSuchPlanTask

_KEY_NAME: Final = "plan-tasks"
_KEY_BYTES: Final = 32
_VERSION: Final = b"\x01"
_SIGNATURE_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class PlanTask:
    """A piece of a scan: data manifests by their places, without the first files of the first."""

    scope: ScanScope
    places: Sequence[int]
    skip: int = 0


class PlanTokens:
    """Writes and reads the plan tasks of one table."""

    def __init__(self, catalog: Catalog, pointer: Pointer) -> None:
        self._pointer = pointer
        self._key = catalog.server.signing_keys.find_or_create(_KEY_NAME, _KEY_BYTES, catalog.now_ms())

    def write(self, tasks: Sequence[PlanTask]) -> list[str]:
        """Return the tokens of tasks."""
        return [self._signed(task) for task in tasks]

    def read(self, token: str, metadata: TableMetadata) -> PlanTask:
        """Return the task of a token.

        Raises:
            NoSuchPlanTask: the token is not of this table, or its schema or a snapshot of its scan is gone.
        """
        claims = self._claims(token)
        snapshot = metadata.snapshots_by_id.get(SnapshotId(claims["snapshot"]))
        schema = next((item for item in metadata.schemas if item.schema_id == claims["schema"]), None)
        # The id of a schema that was removed is given again. Tokens of earlier versions do not say what it was.
        if (
            snapshot is None
            or schema is None
            or claims.get("columns", schema.fingerprint) != schema.fingerprint
        ):
            raise NoSuchPlanTask
        start_id = claims["start"]
        if start_id is not None and not is_whole_range(metadata, start_id, snapshot):
            # Without all snapshots of the range, the places are those of other manifests.
            raise NoSuchPlanTask
        try:
            filter_ = parse_expression(claims["filter"])
            rows = RowFilter.of(filter_, schema, case_sensitive=claims["case"])
        except InvalidFilter as error:
            # Another version of Icetower wrote it, and understood what this one does not.
            raise NoSuchPlanTask from error
        scope = ScanScope(
            snapshot=snapshot,
            start_snapshot_id=start_id,
            rows=rows,
            stats_ids=frozenset(map(FieldId, claims["stats"])),
        )
        return PlanTask(scope, claims["places"], claims["skip"])

    def _signed(self, task: PlanTask) -> str:
        scope = task.scope
        assert scope.snapshot is not None  # a table without data has no tasks
        claims = {
            "pointer": self._pointer.id,
            "uuid": self._pointer.uuid,
            "registration": self._pointer.registration,
            "snapshot": scope.snapshot.snapshot_id,
            "start": scope.start_snapshot_id,
            "schema": scope.rows.schema.schema_id,
            "columns": scope.rows.schema.fingerprint,
            "filter": to_json(scope.rows.filter),
            "case": scope.rows.case_sensitive,
            "stats": sorted(scope.stats_ids),
            "places": list(task.places),
            "skip": task.skip,
        }
        packed = _VERSION + zlib.compress(json.dumps(claims, separators=(",", ":")).encode())
        return base64.urlsafe_b64encode(self._signature(packed) + packed).decode("ascii").rstrip("=")

    def _claims(self, token: str) -> dict[str, Any]:
        try:
            content = base64.b64decode(
                token.encode("ascii") + b"=" * (-len(token) % 4), altchars=b"-_", validate=True
            )
        except (binascii.Error, UnicodeError) as error:
            raise NoSuchPlanTask from error
        signature, packed = content[:_SIGNATURE_BYTES], content[_SIGNATURE_BYTES:]
        # Only signed tokens are read.
        if not hmac.compare_digest(signature, self._signature(packed)) or packed[:1] != _VERSION:
            raise NoSuchPlanTask
        claims: dict[str, Any] = json.loads(zlib.decompress(packed[1:]))
        of_table = claims["pointer"], claims["uuid"], claims.get("registration", 0)
        if of_table != (self._pointer.id, self._pointer.uuid, self._pointer.registration):
            raise NoSuchPlanTask
        return claims

    def _signature(self, packed: bytes) -> bytes:
        return hmac.new(self._key, packed, sha256).digest()[:_SIGNATURE_BYTES]

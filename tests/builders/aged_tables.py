"""Tables that seem to have been made long ago."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import TableIdentifier

DAY_MS = 86_400_000


def let_be_a_day_old(catalog: RemoteCatalog, identifier: TableIdentifier) -> None:
    """Let all that a table on local files has become so far be a day old."""
    place = Path(str(catalog.tables.load(identifier).metadata_location).removeprefix("file://"))
    metadata = json.loads(place.read_text(encoding="utf-8"))
    for found in (metadata, *metadata["snapshots"], *metadata["snapshot-log"], *metadata["metadata-log"]):
        for key in {"timestamp-ms", "last-updated-ms"} & found.keys():
            found[key] -= DAY_MS
    earlier = place.with_name(f"00009-{uuid.uuid4()}.metadata.json")
    earlier.write_text(json.dumps(metadata), encoding="utf-8")
    catalog.tables.register(identifier, f"file://{earlier}", overwrite=True)

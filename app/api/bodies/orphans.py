"""JSON of orphans: the request, the lines of a list, and what has become of marked ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import orjson
from pydantic import Field

from app.api.bodies.json_answer import present
from app.api.bodies.json_body import ExtensionBody
from app.api.bodies.table.expiry import GracePeriod
from app.catalog.context.rows import OrphanRun
from app.catalog.deletions.orphan_search import OrphanWish
from app.engine.model.data_types.moments import moment_text
from app.engine.model.document import Bool, Long
from app.engine.model.ids import Location
from app.fileio.files import ListedFile


class OrphansBody(ExtensionBody):
    # Unlike in other requests: a word that is misspelled or forgotten must not delete.
    dry_run: Bool = True
    older_than_ms: Annotated[Long, Field(ge=0)] | None = None
    location: Annotated[str, Field(min_length=1)] | None = None
    file_list: Annotated[Location, Field(min_length=1)] | None = None
    grace_period_ms: GracePeriod | None = None

    def wish(self) -> OrphanWish:
        """Return the request for the use case."""
        return OrphanWish(self.older_than_ms, self.location, self.file_list, self.grace_period_ms)


def orphan_lines(files: Iterable[ListedFile]) -> bytes:
    """Return files as lines of JSON with the columns of Spark's `file_list_view`."""
    return b"".join(
        orjson.dumps(
            {
                "file_path": file.location,
                "last_modified": moment_text(file.modified_ms),
                "size_bytes": file.size_bytes,
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )
        for file in files
    )


def orphan_runs_json(runs: Iterable[OrphanRun]) -> bytes:
    """Return what has become of marked orphans."""
    return orjson.dumps({"runs": [_run(run) for run in runs]})


def _run(run: OrphanRun) -> dict[str, Any]:
    return {
        "run-id": run.id,
        "state": run.state,
        "marked-ms": run.created_ms,
        "files-deleted-after-ms": run.delete_after_ms,
        "marked-files": run.marked_files,
        "marked-bytes": run.marked_bytes,
        "deleted-files": run.deleted_files,
        "deleted-bytes": run.deleted_bytes,
        "kept-files": run.kept_files,
        "report": orjson.Fragment(run.report),
        **present({"finished-ms": run.finished_ms, "error": run.error}),
    }

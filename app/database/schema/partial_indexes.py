"""Indexes of some rows of a table only, for migrations to compare with.

A server does without this module: a condition for Postgres makes SQLAlchemy import all that it knows of Postgres.
"""

from __future__ import annotations

from sqlalchemy import Index

from app.database.schema.rows import (
    file_deletions,
    maintenance_jobs,
    namespaces,
    pointer_history,
    receipts,
)

# An index that begins with a null parent would not do: Postgres sorts what it reads from one.
_is_outermost = namespaces.c.parent_id.is_(None)
Index(
    "ix_namespaces_outermost",
    namespaces.c.warehouse_id,
    namespaces.c.name,
    postgresql_where=_is_outermost,
    sqlite_where=_is_outermost,
)

# Most requests bring neither: they pay for neither.
for _column in (receipts.c.key, receipts.c.request_id):
    _is_given = _column.is_not(None)
    Index(
        f"ix_receipts_principal_{_column.name}",
        receipts.c.principal,
        _column,
        postgresql_where=_is_given,
        sqlite_where=_is_given,
    )
_has_job = receipts.c.job.is_not(None)
Index("ix_receipts_job", receipts.c.job, postgresql_where=_has_job, sqlite_where=_has_job)
_did_not_land = receipts.c.outcome != "landed"
Index(
    "ix_receipts_not_landed",
    receipts.c.commit_id,
    postgresql_where=_did_not_land,
    sqlite_where=_did_not_land,
)

_is_running = maintenance_jobs.c.state == "running"
Index(
    "uq_maintenance_jobs_running",
    maintenance_jobs.c.pointer_id,
    unique=True,
    postgresql_where=_is_running,
    sqlite_where=_is_running,
)

# Few of many entries are at work, and few events are the last of their pointer.
_has_begun = file_deletions.c.begun_ms.is_not(None)
Index(
    "ix_file_deletions_begun",
    file_deletions.c.leased_until_ms,
    postgresql_where=_has_begun,
    sqlite_where=_has_begun,
)
# Most events are commits: no commit writes to this one.
_is_no_commit = pointer_history.c.event != "committed"
Index(
    "ix_pointer_history_beside_commits",
    pointer_history.c.pointer_id,
    postgresql_where=_is_no_commit,
    sqlite_where=_is_no_commit,
)
_is_last = pointer_history.c.location.is_(None)
Index(
    "ix_pointer_history_last",
    pointer_history.c.warehouse_id,
    pointer_history.c.event,
    postgresql_where=_is_last,
    sqlite_where=_is_last,
)

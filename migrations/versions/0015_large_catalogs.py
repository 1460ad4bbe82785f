"""Indexes for catalogs with very many tables, drops and queued deletions; no commit writes to one of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

INDEXES = {
    "ix_file_deletions_pointer_id": ("file_deletions", ["pointer_id"]),
    "ix_file_deletions_state_warehouse_id_not_before_ms": (
        "file_deletions",
        ["state", "warehouse_id", "not_before_ms"],
    ),
    "ix_dropped_warehouse_id_id": ("dropped", ["warehouse_id", "id"]),
}
PARTIAL = {
    "ix_file_deletions_begun": ("file_deletions", ["leased_until_ms"], "begun_ms IS NOT NULL"),
    "ix_pointer_history_last": ("pointer_history", ["warehouse_id", "event"], "location IS NULL"),
}


def upgrade() -> None:
    for index, (table, columns) in INDEXES.items():
        op.create_index(index, table, columns)
    for index, (table, columns, condition) in PARTIAL.items():
        where = sa.text(condition)
        op.create_index(index, table, columns, postgresql_where=where, sqlite_where=where)
    op.drop_index("ix_file_deletions_state_not_before_ms", "file_deletions")


def downgrade() -> None:
    op.create_index("ix_file_deletions_state_not_before_ms", "file_deletions", ["state", "not_before_ms"])
    for index, (table, *_) in (INDEXES | PARTIAL).items():
        op.drop_index(index, table)

"""File deletions of a third kind: orphans that were marked, with their lists."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

COLUMNS = (
    "id, warehouse_id, kind, uuid, metadata_location, identifier, state, attempts, not_before_ms, leased_until_ms, "
    "last_error, created_ms, finished_ms, pointer_id, expired, begun_ms"
)
INDEXES = {
    "ix_file_deletions_state_not_before_ms": ["state", "not_before_ms"],
    "ix_file_deletions_warehouse_id": ["warehouse_id"],
    "ix_file_deletions_uuid": ["uuid"],
    "ix_file_deletions_finished_ms": ["finished_ms"],
}
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _allow_kinds("'purge', 'expire', 'orphans'")
    op.create_table(
        "orphan_batches",
        sa.Column("deletion_id", ID, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("marked_files", sa.Integer(), nullable=False),
        sa.Column("marked_bytes", sa.BigInteger(), nullable=False),
        sa.Column("deleted_files", sa.Integer(), nullable=True),
        sa.Column("deleted_bytes", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("deletion_id", "number", name="pk_orphan_batches"),
    )


def downgrade() -> None:
    # The build of the older revision cannot work them off: their files stay.
    op.execute("DELETE FROM file_deletions WHERE kind = 'orphans'")
    op.drop_table("orphan_batches")
    _allow_kinds("'purge', 'expire'")


def _allow_kinds(kinds: str) -> None:
    if op.get_bind().dialect.name == "sqlite":
        _rebuild(kinds)
        return
    op.drop_constraint("ck_file_deletions_kind", "file_deletions", type_="check")
    op.create_check_constraint("ck_file_deletions_kind", "file_deletions", f"kind IN ({kinds})")


def _rebuild(kinds: str) -> None:
    """Copy the table into one with another check: SQLite cannot change one in place."""
    for index in INDEXES:
        op.drop_index(index, "file_deletions")
    op.rename_table("file_deletions", "file_deletions_before")
    op.create_table(
        "file_deletions",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("warehouse_id", ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("uuid", sa.Text(), nullable=False),
        sa.Column("metadata_location", sa.Text(), nullable=False),
        sa.Column("identifier", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("not_before_ms", sa.BigInteger(), nullable=False),
        sa.Column("leased_until_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("finished_ms", sa.BigInteger(), nullable=True),
        sa.Column("pointer_id", ID, nullable=True),
        sa.Column("expired", sa.Text(), nullable=True),
        sa.Column("begun_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_file_deletions"),
        sa.ForeignKeyConstraint(
            ["warehouse_id"], ["warehouses.id"], name="fk_file_deletions_warehouse_id", ondelete="RESTRICT"
        ),
        sa.CheckConstraint(f"kind IN ({kinds})", name="ck_file_deletions_kind"),
        sa.CheckConstraint("state IN ('queued', 'done', 'failed', 'kept')", name="ck_file_deletions_state"),
        sqlite_autoincrement=True,
    )
    op.execute(
        f"INSERT INTO file_deletions ({COLUMNS}) SELECT {COLUMNS} FROM file_deletions_before"  # noqa: S608 - names of ours
    )
    op.drop_table("file_deletions_before")
    for index, columns in INDEXES.items():
        op.create_index(index, "file_deletions", columns)

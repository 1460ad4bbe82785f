"""File deletions of a second kind: files that only expired snapshots reached."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OLD_COLUMNS = (
    "id, warehouse_id, kind, uuid, metadata_location, identifier, state, attempts, not_before_ms, leased_until_ms, "
    "last_error, created_ms, finished_ms"
)
OLD_INDEXES = {
    "ix_file_deletions_state_not_before_ms": ["state", "not_before_ms"],
    "ix_file_deletions_warehouse_id": ["warehouse_id"],
}


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _rebuild("'purge', 'expire'", *_new_columns())
    else:
        op.drop_constraint("ck_file_deletions_kind", "file_deletions", type_="check")
        for column in _new_columns():
            op.add_column("file_deletions", column)
        op.create_check_constraint("ck_file_deletions_kind", "file_deletions", "kind IN ('purge', 'expire')")
    op.create_index("ix_file_deletions_uuid", "file_deletions", ["uuid"])


def downgrade() -> None:
    # The build of the older revision cannot work them off: their files stay until somebody looks for orphans.
    op.execute("DELETE FROM file_deletions WHERE kind = 'expire'")
    op.drop_index("ix_file_deletions_uuid", "file_deletions")
    if op.get_bind().dialect.name == "sqlite":
        _rebuild("'purge'")
    else:
        op.drop_constraint("ck_file_deletions_kind", "file_deletions", type_="check")
        for column in _new_columns():
            op.drop_column("file_deletions", column.name)
        op.create_check_constraint("ck_file_deletions_kind", "file_deletions", "kind IN ('purge')")


def _new_columns() -> tuple[sa.Column[int], sa.Column[str]]:
    return sa.Column("pointer_id", ID, nullable=True), sa.Column("expired", sa.Text(), nullable=True)


def _rebuild(kinds: str, *added: sa.Column[int] | sa.Column[str]) -> None:
    """Copy the table into one with another check: SQLite cannot change one in place."""
    for index in OLD_INDEXES:
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
        *added,
        sa.PrimaryKeyConstraint("id", name="pk_file_deletions"),
        sa.ForeignKeyConstraint(
            ["warehouse_id"], ["warehouses.id"], name="fk_file_deletions_warehouse_id", ondelete="RESTRICT"
        ),
        sa.CheckConstraint(f"kind IN ({kinds})", name="ck_file_deletions_kind"),
        sa.CheckConstraint("state IN ('queued', 'done', 'failed', 'kept')", name="ck_file_deletions_state"),
        sqlite_autoincrement=True,
    )
    op.execute(
        f"INSERT INTO file_deletions ({OLD_COLUMNS}) SELECT {OLD_COLUMNS} FROM file_deletions_before"  # noqa: S608 - names of ours
    )
    op.drop_table("file_deletions_before")
    for index, columns in OLD_INDEXES.items():
        op.create_index(index, "file_deletions", columns)

"""File deletions of a third kind: orphans that were marked, with their lists."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0006"
branch_labels = None
depends_on = None

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
    """Change the check; SQLite cannot change one in place, so the table is copied."""
    with op.batch_alter_table("file_deletions", table_kwargs={"sqlite_autoincrement": True}) as table:
        table.drop_constraint("ck_file_deletions_kind", type_="check")
        table.create_check_constraint("ck_file_deletions_kind", f"kind IN ({kinds})")

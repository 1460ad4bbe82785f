"""Receipts: what became of each request that changes something."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "receipts",
        sa.Column("commit_id", NAME, nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("warehouse", sa.Text(), nullable=False),
        sa.Column("principal", NAME, nullable=False),
        sa.Column("request_id", NAME, nullable=True),
        sa.Column("key", NAME, nullable=True),
        sa.Column("began_ms", sa.BigInteger(), nullable=False),
        sa.Column("noted_ms", sa.BigInteger(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("commit_id", name="pk_receipts"),
        sa.CheckConstraint(
            "outcome IN ('landed', 'unchanged', 'failed', 'in-progress', 'unknown')",
            name="ck_receipts_outcome",
        ),
        sqlite_with_rowid=False,
    )
    for column, condition in (("key", '"key" IS NOT NULL'), ("request_id", "request_id IS NOT NULL")):
        op.create_index(
            f"ix_receipts_principal_{column}",
            "receipts",
            ["principal", column],
            postgresql_where=sa.text(condition),
            sqlite_where=sa.text(condition),
        )
    did_not_land = sa.text("outcome != 'landed'")
    op.create_index(
        "ix_receipts_not_landed",
        "receipts",
        ["commit_id"],
        postgresql_where=did_not_land,
        sqlite_where=did_not_land,
    )
    op.add_column(
        "idempotency_keys", sa.Column("commit_id", sa.Text(), nullable=False, server_default=sa.text("''"))
    )


def downgrade() -> None:
    op.drop_column("idempotency_keys", "commit_id")
    op.drop_table("receipts")

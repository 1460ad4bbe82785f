"""Queues of writers that have lost races, and which tables have slots reserved for them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "landing_queues",
        sa.Column("pointer_id", ID, autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("pointer_id", name="pk_landing_queues"),
    )
    op.create_index("ix_landing_queues_changed_ms", "landing_queues", ["changed_ms"])
    op.add_column(
        "pointers", sa.Column("reserved", sa.Integer(), nullable=False, server_default=sa.text("0"))
    )


def downgrade() -> None:
    op.drop_column("pointers", "reserved")
    op.drop_index("ix_landing_queues_changed_ms", "landing_queues")
    op.drop_table("landing_queues")

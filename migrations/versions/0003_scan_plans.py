"""Plans of scans that are made in the background, and the keys that servers on one database sign with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "scan_plans",
        sa.Column("id", NAME, nullable=False),
        sa.Column("pointer_id", ID, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("leased_until_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_scan_plans"),
        sa.CheckConstraint(
            "state IN ('submitted', 'completed', 'failed', 'cancelled')", name="ck_scan_plans_state"
        ),
    )
    op.create_index("ix_scan_plans_expires_ms", "scan_plans", ["expires_ms"])
    op.create_table(
        "signing_keys",
        sa.Column("name", NAME, nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_signing_keys"),
    )


def downgrade() -> None:
    for table in ("signing_keys", "scan_plans"):
        op.drop_table(table)

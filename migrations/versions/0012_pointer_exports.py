"""When the pointers of each warehouse are next written down beside its tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "pointer_exports",
        sa.Column("warehouse_id", ID, autoincrement=False, nullable=False),
        sa.Column("due_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("warehouse_id", name="pk_pointer_exports"),
    )


def downgrade() -> None:
    op.drop_table("pointer_exports")

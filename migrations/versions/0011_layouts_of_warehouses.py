"""Warehouses whose pointers are the names of files: tables as Iceberg's own file-system catalog keeps them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "warehouses", sa.Column("layout", sa.Text(), nullable=False, server_default=sa.text("'catalog'"))
    )


def downgrade() -> None:
    op.drop_column("warehouses", "layout")

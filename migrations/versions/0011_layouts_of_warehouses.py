"""Warehouses whose pointers are the names of files: tables as Iceberg's own file-system catalog keeps them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "warehouses", sa.Column("layout", sa.Text(), nullable=False, server_default=sa.text("'catalog'"))
    )


def downgrade() -> None:
    query = sa.text("SELECT name FROM warehouses WHERE layout <> 'catalog' ORDER BY name")
    if names := op.get_bind().scalars(query).all():
        # Nothing would say what they were once this revision is back.
        raise CommandError(
            f"older builds know no layout hadoop; drop its warehouses first, their files stay: {', '.join(names)}"
        )
    op.drop_column("warehouses", "layout")

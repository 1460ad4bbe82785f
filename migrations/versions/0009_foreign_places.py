"""Where tables name files outside their own places; of tables that are there already it is not known."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "foreign_places",
        sa.Column("pointer_id", ID, nullable=False),
        sa.Column("place", NAME, nullable=False),
        sa.Column("noted", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("pointer_id", "place", name="pk_foreign_places"),
    )
    op.create_index("ix_foreign_places_place", "foreign_places", ["place"])
    # Housekeeping looks at them one after the other.
    op.execute(
        "INSERT INTO foreign_places (pointer_id, place, noted) SELECT id, '', 0 FROM pointers WHERE kind = 'table'"
    )


def downgrade() -> None:
    op.drop_table("foreign_places")

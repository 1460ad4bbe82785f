"""Where tables keep their files, which registration a pointer is of, and deletions that have begun."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
BATCH = 1_000
SAME_STORE = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}


def upgrade() -> None:
    op.create_table(
        "table_places",
        sa.Column("pointer_id", ID, nullable=False),
        sa.Column("place", NAME, nullable=False),
        sa.PrimaryKeyConstraint("pointer_id", "place", name="pk_table_places"),
    )
    op.create_index("ix_table_places_place", "table_places", ["place"])
    op.create_table(
        "metadata_sweeps",
        sa.Column("pointer_id", ID, autoincrement=False, nullable=False),
        sa.Column("swept_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("pointer_id", name="pk_metadata_sweeps"),
    )
    op.add_column(
        "pointers", sa.Column("registration", sa.BigInteger(), nullable=False, server_default=sa.text("0"))
    )
    op.create_index("ix_pointers_metadata_location", "pointers", ["metadata_location"])
    op.add_column("file_deletions", sa.Column("begun_ms", sa.BigInteger(), nullable=True))
    # Entries that an older build has leased may have been begun: it is not known.
    op.execute("UPDATE file_deletions SET begun_ms = created_ms WHERE state = 'queued' AND attempts > 0")
    op.create_index("ix_file_deletions_finished_ms", "file_deletions", ["finished_ms"])
    op.create_index("ix_pointer_history_at_ms", "pointer_history", ["at_ms"])
    _fill_places()


def downgrade() -> None:
    op.drop_index("ix_pointer_history_at_ms", "pointer_history")
    op.drop_index("ix_file_deletions_finished_ms", "file_deletions")
    op.drop_column("file_deletions", "begun_ms")
    op.drop_index("ix_pointers_metadata_location", "pointers")
    op.drop_column("pointers", "registration")
    op.drop_table("metadata_sweeps")
    op.drop_table("table_places")


def _fill_places() -> None:
    """Note for each pointer the folder that its metadata file is in; its next commit adds what is missing."""
    connection = op.get_bind()
    after = 0
    while True:
        query = sa.text(
            "SELECT id, metadata_location FROM pointers WHERE id > :after ORDER BY id LIMIT :batch"
        )
        found = connection.execute(query, {"after": after, "batch": BATCH}).all()
        if not found:
            return
        values = [{"pointer": row.id, "place": _home_of(row.metadata_location)} for row in found]
        connection.execute(
            sa.text("INSERT INTO table_places (pointer_id, place) VALUES (:pointer, :place)"), values
        )
        after = found[-1].id


def _home_of(location: str) -> str:
    """Return what `app.catalog.context.places.table_places.homes_of` returned when this revision was made."""
    scheme, colon, rest = ("file", ":", location) if location.startswith("/") else location.partition(":")
    store = SAME_STORE.get(scheme.lower(), scheme.lower()) if colon else "file"
    authority, path = "", rest if colon else location
    if store != "file":
        authority, _, path = path.removeprefix("//").partition("/")
    folders = path.split("/")[:-1]
    if store in ("file", "hdfs"):
        folders = [folder for folder in folders if folder]
    if folders and folders[-1] == "metadata":
        folders.pop()
    return f"{store}://{authority}/" + "".join(f"{folder}/" for folder in folders)

"""Places of tables in HDFS and Azure under the names that all spellings of them share.

The rows of before stay: a server of before may still be at work, or come back.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

BATCH = 1_000
SCHEMES = ("abfs", "gcs", "hdfs", "swebhdfs", "wasb", "webhdfs")
SAME_STORE = {"wasb": "abfs", "gcs": "gs", "webhdfs": "hdfs", "swebhdfs": "hdfs"}


def upgrade() -> None:
    connection = op.get_bind()
    for table in ("table_places", "foreign_places"):
        rows = sa.Table(table, sa.MetaData(), autoload_with=connection)
        for scheme in SCHEMES:
            _add_names(connection, rows, scheme)


def downgrade() -> None:
    """Leave the rows: a name that nothing asks for does no harm."""


def _add_names(connection: sa.Connection, rows: sa.Table, scheme: str) -> None:
    place = rows.c.place
    # `;` follows the colon: all that begins so is found by the index.
    wanted = (place >= f"{scheme}://") & (place < f"{scheme};")
    named = sa.select(rows.c.pointer_id, place).where(wanted).order_by(rows.c.pointer_id, place)
    found: set[tuple[int, str]] = {(row.pointer_id, row.place) for row in connection.execute(named)}
    new = sorted({(pointer_id, _name_of(old)) for pointer_id, old in found})
    for start in range(0, len(new), BATCH):
        batch = new[start : start + BATCH]
        query = sa.select(rows.c.pointer_id, place).where(
            rows.c.pointer_id.in_([pointer_id for pointer_id, _ in batch]),
            place.in_([name for _, name in batch]),
        )
        there = {(row.pointer_id, row.place) for row in connection.execute(query)}
        more = {"noted": 0} if "noted" in rows.c else {}
        values = [
            {"pointer_id": pointer_id, "place": name, **more}
            for pointer_id, name in batch
            if (pointer_id, name) not in there
        ]
        if values:
            connection.execute(sa.insert(rows), values)


def _name_of(place: str) -> str:
    """Return what `app.fileio.locations.folder_name` returned when this revision was made."""
    scheme, _, rest = place.partition("://")
    authority, slash, path = rest.partition("/")
    store = SAME_STORE.get(scheme, scheme)
    if store == "hdfs":
        authority = ""
    elif store == "abfs":
        container, _, host = authority.lower().partition("@")
        account = host.partition(".")[0]
        authority = f"{container}@{account}" if account else container
    return f"{store}://{authority}{slash}{path}"

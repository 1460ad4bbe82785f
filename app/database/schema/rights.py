"""What the role of a server may do with the tables of its database."""

from __future__ import annotations

from typing import Final

from sqlalchemy import text

from app.database.connections.database import Database
from app.database.schema.rows import metadata
from app.errors import DatabaseUnavailable

_LACKING: Final = text("""
    WITH ours AS (
        SELECT oid, relname FROM pg_class
        WHERE relkind IN ('r', 'p') AND pg_table_is_visible(oid) AND relname = ANY(:names)
    )
    SELECT relname FROM ours
    WHERE NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
        AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE'))
    UNION
    SELECT sequence.relname FROM ours
    JOIN pg_depend ON refobjid = ours.oid AND deptype = 'a' AND classid = 'pg_class'::regclass
    JOIN pg_class AS sequence ON sequence.oid = objid
    WHERE CASE sequence.relkind WHEN 'S' THEN NOT has_sequence_privilege(sequence.oid, 'USAGE, UPDATE') ELSE false END
    ORDER BY relname
""")


def check_changes(database: Database) -> None:
    """Check that the database takes changes, and those of this role to every table.

    Raises:
        DatabaseUnavailable: it does not answer, only reads, its disk is full, or the role lacks a right.
        CommitStateUnknown: it did not confirm what it had to write.
    """
    if database.dialect_name != "sqlite":
        names = list(metadata.tables)
        lacking = database.read(lambda connection: connection.scalars(_LACKING, {"names": names}).all())
        if lacking:
            raise DatabaseUnavailable(
                f"The database's role lacks rights on {', '.join(lacking)}: it needs SELECT, INSERT, UPDATE and DELETE "
                "on every table, and USAGE on every sequence. New tables belong to the role that ran `icetower migrate`"
            )
    database.check_writes()

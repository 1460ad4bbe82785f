"""When tables were last read: kept for the tables that were read last."""

from __future__ import annotations

from app.catalog.context.seen.last_reads import LastReads


def test_the_last_read_of_each_table_is_kept() -> None:
    reads = LastReads()
    reads.note(1, 100)
    reads.note(2, 200)
    reads.note(1, 300)

    assert (reads.find(1), reads.find(2), reads.find(3)) == (300, 200, None)


def test_the_table_that_was_not_read_for_the_longest_time_goes() -> None:
    reads = LastReads(most_tables=2)
    for pointer_id, now_ms in ((1, 100), (2, 200), (1, 300), (3, 400)):
        reads.note(pointer_id, now_ms)

    assert (reads.find(1), reads.find(2), reads.find(3)) == (300, None, 400)

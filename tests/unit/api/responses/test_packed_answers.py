"""Compressed answers, kept by their ETag."""

from __future__ import annotations

import gzip

from app.api.responses.packed_answers import PackedAnswers


def test_packed_answer_is_kept_under_its_tag() -> None:
    answers = PackedAnswers(1 << 20)

    packed = answers.pack(b"tag", b"x" * 5000)

    assert gzip.decompress(packed) == b"x" * 5000
    assert answers.find(b"tag") is packed
    assert answers.find(b"other") is None


def test_without_room_nothing_is_kept() -> None:
    answers = PackedAnswers(0)

    assert gzip.decompress(answers.pack(b"tag", b"x" * 5000)) == b"x" * 5000
    assert answers.find(b"tag") is None

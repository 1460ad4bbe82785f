"""Regular expressions, learnt from records, that find all parts of a record in one step.

A manifest's records mostly look alike: the same columns have metrics, in the same order, and only numbers and texts
differ. Walking such a record value by value takes Python many steps; one regular expression, written for what the last
records looked like, takes one. It only ever matches what the walk would find, so it can be tried on any record.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from app.formats.avro.types import Length, NotTraceable, Token, write_long

_MAX_SHAPES: Final = 8
_MAX_TOKENS: Final = 3000
"""A longer expression takes longer to compile than it saves."""
_FIRST_LESSON: Final = 16
"""So many records are walked before the first expression is compiled: most manifests are small."""
_SPREAD: Final = 16
_MAX_SIZES: Final = 160


@dataclass(frozen=True, slots=True)
class _Shape:
    skeleton: tuple[bytes | None, ...]
    sizes: tuple[frozenset[int], ...]
    pattern: re.Pattern[bytes]


class EntryShapes:
    """The shapes learnt from records of one schema. Safe to use from many threads: shapes are replaced as a whole."""

    def __init__(self) -> None:
        self._shapes: tuple[_Shape, ...] = ()
        self._misses = 0
        self._lessons = 0
        self._next_lesson = _FIRST_LESSON

    def match(self, content: bytes, pos: int) -> re.Match[bytes] | None:
        """Return a match whose groups are the parts, or None: then the record has to be walked."""
        shapes = self._shapes
        for position, shape in enumerate(shapes):
            match = shape.pattern.match(content, pos)
            if match is not None:
                if position:
                    self._shapes = (shape, *shapes[:position], *shapes[position + 1 :])
                return match
        return None

    def wants_lesson(self) -> bool:
        """Count a record that matched nothing; return whether to learn from it."""
        self._misses += 1
        return self._misses >= self._next_lesson

    def learn(self, tokens: list[Token]) -> None:
        """Learn from the trace of a record; the length of a text does not change the shape."""
        self._lessons += 1
        # Each lesson costs a compilation, so records that look unlike all others are soon left to the walk.
        self._next_lesson = self._misses + 2**self._lessons
        skeleton = tuple(None if isinstance(token, Length) else token for token in tokens)
        sizes = tuple(frozenset({token.size}) for token in tokens if isinstance(token, Length))
        others = []
        for shape in self._shapes:
            if shape.skeleton == skeleton:
                sizes = tuple(mine | theirs for mine, theirs in zip(sizes, shape.sizes, strict=True))
            else:
                others.append(shape)
        try:
            pattern = _compile(skeleton, sizes)
        except NotTraceable:
            self._next_lesson = self._misses * 2
            return
        self._shapes = (_Shape(skeleton, sizes, pattern), *others[: _MAX_SHAPES - 1])


def _compile(skeleton: tuple[bytes | None, ...], sizes: tuple[frozenset[int], ...]) -> re.Pattern[bytes]:
    if len(skeleton) > _MAX_TOKENS:
        raise NotTraceable
    rest = iter(sizes)
    text = b"".join(_text_pattern(next(rest)) if token is None else token for token in skeleton)
    return re.compile(text, re.DOTALL)


def _text_pattern(seen: frozenset[int]) -> bytes:
    """Return what matches texts of the sizes seen; once they differ, also of those around."""
    smallest, largest = min(seen), max(seen)
    sizes = sorted(seen)
    if smallest != largest:
        around = range(max(0, smallest - _SPREAD), largest + _SPREAD + 1)
        sizes += [size for size in around if size not in seen]
    if len(sizes) > _MAX_SIZES:
        raise NotTraceable
    texts = [re.escape(write_long(size)) + b".{%d}" % size for size in sizes]
    return texts[0] if len(texts) == 1 else b"(?>" + b"|".join(texts) + b")"

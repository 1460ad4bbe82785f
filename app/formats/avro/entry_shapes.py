"""Regular expressions, learnt from records, that find all parts of a record in one step.

A manifest's records mostly look alike: the same columns have metrics, in the same order, and only numbers and texts
differ. Walking such a record value by value takes Python many steps; one regular expression, written for what the last
records looked like, takes one. It only ever matches what the walk would find, so it can be tried on any record.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.formats.avro.types import MAX_TOKENS, Length, NotTraceable, Token, write_long

_MAX_SHAPES: Final = 8
_FIRST_LESSON: Final = 16
"""So many records are walked before the first expression is compiled: most manifests are small."""
_SPREAD: Final = 16
_MAX_SIZES: Final = 160
_MAX_ALTERNATIVES: Final = 20_000
"""So many sizes of texts may all shapes of a schema have together: half a second to compile."""
_MAX_KEPT: Final = 100_000
"""And all shapes of the process, about 100 MB; those of schemas that learnt last stay."""


@dataclass(frozen=True, slots=True)
class _Shape:
    skeleton: tuple[bytes | None, ...]
    sizes: tuple[frozenset[int], ...]
    pattern: re.Pattern[bytes]
    alternatives: int


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

    @property
    def first(self) -> Callable[[bytes, int], re.Match[bytes] | None]:
        """What matches records of the shape that was met last, also after another is met."""
        return self._shapes[0].pattern.match if self._shapes else _no_match

    def run(self, content: bytes, pos: int) -> list[re.Match[bytes]]:
        """Return matches, one right behind the other, while records have the last shape."""
        for shape in self._shapes[:1]:
            # What the standard library's own `re.Scanner` goes on with; the name is missing in typeshed.
            scanner = shape.pattern.scanner(content, pos)  # type: ignore[attr-defined]
            return list(iter(scanner.match, None))
        return []

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
            shapes = [_compile(skeleton, sizes), *others[: _MAX_SHAPES - 1]]
        except NotTraceable:
            self.put_off_lesson()
            return
        while sum(shape.alternatives for shape in shapes) > _MAX_ALTERNATIVES:
            shapes.pop()
        self._shapes = tuple(shapes)
        _LEARNT.note(self, sum(shape.alternatives for shape in shapes))

    def put_off_lesson(self) -> None:
        """Let records be walked for a while: no expression can describe the last one."""
        self._next_lesson = self._misses * 2

    def forget(self) -> None:
        """Forget all shapes: records are walked until there is a new lesson."""
        self._shapes = ()


def _no_match(_content: bytes, _pos: int) -> None:
    """Match nothing."""


class _Learnt:
    """How many alternatives the shapes of all schemas have; the oldest are forgotten."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._alternatives: OrderedDict[EntryShapes, int] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, shapes: EntryShapes, alternatives: int) -> None:
        """Note what the shapes of one schema have now."""
        with self._lock:
            self._left += self._alternatives.pop(shapes, 0) - alternatives
            self._alternatives[shapes] = alternatives
            while self._left < 0:
                oldest, forgotten = self._alternatives.popitem(last=False)
                oldest.forget()
                self._left += forgotten


_LEARNT: Final = _Learnt(_MAX_KEPT)


def _compile(skeleton: tuple[bytes | None, ...], sizes: tuple[frozenset[int], ...]) -> _Shape:
    if len(skeleton) > MAX_TOKENS:
        raise NotTraceable
    texts = [_sizes_around(seen) for seen in sizes]
    alternatives = len(skeleton) + sum(map(len, texts))
    if alternatives > _MAX_ALTERNATIVES:
        raise NotTraceable
    rest = iter(texts)
    text = b"".join(_text_pattern(next(rest)) if token is None else token for token in skeleton)
    return _Shape(skeleton, sizes, re.compile(text, re.DOTALL), alternatives)


def _sizes_around(seen: frozenset[int]) -> list[int]:
    """Return the sizes of texts to expect: those seen and, once they differ, those around."""
    smallest, largest = min(seen), max(seen)
    if largest - smallest >= _MAX_SIZES:
        raise NotTraceable  # before they are listed: a text may have millions of bytes
    sizes = sorted(seen)
    if smallest != largest:
        around = range(max(0, smallest - _SPREAD), largest + _SPREAD + 1)
        sizes += [size for size in around if size not in seen]
    if len(sizes) > _MAX_SIZES:
        raise NotTraceable
    return sizes


def _text_pattern(sizes: list[int]) -> bytes:
    texts = [re.escape(write_long(size)) + b".{%d}" % size for size in sizes]
    return texts[0] if len(texts) == 1 else b"(?>" + b"|".join(texts) + b")"

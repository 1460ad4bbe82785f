"""The hash behind the bucket transform: 32-bit Murmur3, x86 variant, seed 0."""

from __future__ import annotations

import struct
from typing import Final

_MASK: Final = 0xFFFFFFFF
_LONG: Final = struct.Struct("<q")


def hash_bytes(content: bytes) -> int:
    """Return the hash of some bytes, as a signed 32-bit number.

    Spec: #appendix-b-32-bit-hash-requirements
    """
    state = 0
    whole = len(content) & ~3
    for (block,) in struct.iter_unpack("<I", content[:whole]):
        state ^= _scrambled(block)
        state = ((state << 13) | (state >> 19)) & _MASK
        state = (state * 5 + 0xE6546B64) & _MASK
    if whole != len(content):
        state ^= _scrambled(int.from_bytes(content[whole:], "little"))
    state ^= len(content)
    state = ((state ^ (state >> 16)) * 0x85EBCA6B) & _MASK
    state = ((state ^ (state >> 13)) * 0xC2B2AE35) & _MASK
    state ^= state >> 16
    return state - (1 << 32) if state & 0x80000000 else state


def _scrambled(block: int) -> int:
    block = (block * 0xCC9E2D51) & _MASK
    block = ((block << 15) | (block >> 17)) & _MASK
    return (block * 0x1B873593) & _MASK


def hash_long(number: int) -> int:
    """Return the hash of a 64-bit number; narrower numbers have the same hash.

    Spec: #appendix-b-32-bit-hash-requirements
    """
    return hash_bytes(_LONG.pack(number))

"""The words of a table of vectors, read from a Parquet file with one column of text: enough of the format for that.

pyarrow reads such a file, too, but is 170 MB. Read are snappy or plain pages, plain or dictionary encoding, no nulls.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from elench.errors import UsageError

PLAIN, DICTIONARY = 0, (2, 8)
SNAPPY = 1
DICTIONARY_PAGE, DATA_PAGE = 2, 0


def read_words(path: Path) -> list[str]:
    """The first column of a Parquet file, as text."""
    content = path.read_bytes()
    try:
        size = struct.unpack("<I", content[-8:-4])[0]
        footer = Thrift(content, len(content) - 8 - size).struct()
        columns = [group[1][0][3] for group in footer[4]]
        return [word.decode() for column in columns for word in _column(content, column)]
    except (IndexError, KeyError, ValueError, struct.error) as problem:
        raise UsageError(f"{path}: not a Parquet file with one column of text ({problem!r})") from None


class Thrift:
    """Thrift's compact protocol: structs become {field number: value}."""

    def __init__(self, content: bytes, at: int) -> None:
        self.content, self.at = content, at

    def byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def integer(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def struct(self) -> dict[int, Any]:
        found: dict[int, Any] = {}
        number = 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.integer()
            found[number] = self.value(head & 15)
        return found

    def value(self, kind: int, listed: bool = False) -> Any:
        if kind in (1, 2):
            return self.byte() == 1 if listed else kind == 1
        if kind == 3:
            return self.byte()
        if kind in (4, 5, 6):
            return self.integer()
        if kind == 8:
            size = self.varint()
            self.at += size
            return self.content[self.at - size : self.at]
        if kind in (9, 10):
            head = self.byte()
            size = head >> 4 if head >> 4 < 15 else self.varint()
            return [self.value(head & 15, True) for _ in range(size)]
        if kind == 12:
            return self.struct()
        raise ValueError(f"thrift type {kind}")


def _column(content: bytes, column: dict[int, Any]) -> list[bytes]:
    """All values of a column chunk, page after page."""
    at, codec, wanted = column.get(11, column[9]), column[4], column[5]
    dictionary: list[bytes] = []
    found: list[bytes] = []
    while len(found) < wanted:
        thrift = Thrift(content, at)
        head = thrift.struct()
        page = content[thrift.at : thrift.at + head[3]]
        at = thrift.at + head[3]
        if codec:
            if codec != SNAPPY:
                raise ValueError(f"compression {codec}")
            page = unsnapped(page)
        if head[1] == DICTIONARY_PAGE:
            dictionary = _strings(page, 0, head[7][1])
        elif head[1] == DATA_PAGE:
            count, encoding = head[5][1], head[5][2]
            begin = 4 + struct.unpack("<I", page[:4])[0]  # which values are null: none
            if encoding in DICTIONARY:
                found += [dictionary[i] for i in _indices(page, begin, count)]
            elif encoding == PLAIN:
                found += _strings(page, begin, count)
            else:
                raise ValueError(f"encoding {encoding}")
        else:
            raise ValueError(f"page type {head[1]}")
    return found


def _strings(page: bytes, at: int, count: int) -> list[bytes]:
    """Plain encoding: each value after its length in four bytes."""
    found = []
    for _ in range(count):
        size = int.from_bytes(page[at : at + 4], "little")
        found.append(page[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def _indices(page: bytes, at: int, count: int) -> list[int]:
    """Places in the dictionary: runs of one value, or of values packed bit by bit."""
    width, thrift = page[at], Thrift(page, at + 1)
    size = (width + 7) // 8
    found: list[int] = []
    while len(found) < count:
        head = thrift.varint()
        if head & 1:
            packed = page[thrift.at : thrift.at + (head >> 1) * width]
            thrift.at += len(packed)
            found += _unpacked(packed, min((head >> 1) * 8, count - len(found)), width)
        else:
            found += [int.from_bytes(page[thrift.at : thrift.at + size], "little")] * (head >> 1)
            thrift.at += size
    return found


def _unpacked(packed: bytes, count: int, width: int) -> list[int]:
    """Integers of `width` bits, the lowest first; eight of them fill `width` bytes."""
    found: list[int] = []
    mask = (1 << width) - 1
    for at in range(0, len(packed), max(width, 1)):
        eight = int.from_bytes(packed[at : at + width], "little")
        found += [(eight >> (k * width)) & mask for k in range(8)]
    return found[:count] if width else [0] * count


def unsnapped(packed: bytes) -> bytes:
    """What snappy packed: stretches of plain bytes, and copies of what came before."""
    thrift = Thrift(packed, 0)
    size, out, at = thrift.varint(), bytearray(), thrift.at
    while at < len(packed):
        tag = packed[at]
        kind, at = tag & 3, at + 1
        if kind == 0:
            length = tag >> 2
            if length >= 60:
                more = length - 59
                length = int.from_bytes(packed[at : at + more], "little")
                at += more
            out += packed[at : at + length + 1]
            at += length + 1
            continue
        if kind == 1:
            length, offset = 4 + (tag >> 2 & 7), (tag >> 5) << 8 | packed[at]
            at += 1
        else:
            width = 2 if kind == 2 else 4
            length, offset = 1 + (tag >> 2), int.from_bytes(packed[at : at + width], "little")
            at += width
        start = len(out) - offset
        if offset >= length:
            out += out[start : start + length]
        else:  # a copy that runs into itself repeats
            piece = bytes(out[start:])
            out += (piece * (length // offset + 1))[:length]
    if len(out) != size:
        raise ValueError("a page is damaged")
    return bytes(out)

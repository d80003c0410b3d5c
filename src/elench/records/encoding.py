"""How a text file is encoded: UTF-8 with or without a byte-order mark, UTF-16, compressed or not."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from elench.errors import UsageError


@contextmanager
def decompressing(name: object) -> Iterator[None]:
    """Errors of a broken compressed file as one line."""
    try:
        yield
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        if getattr(error, "errno", None) is not None:
            raise  # the disk, not the content
        raise UsageError(f"{name}: cannot be decompressed: {error}") from None


COMPRESSED: dict[str, Callable[[Path], gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile]] = {
    ".gz": gzip.GzipFile,
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
"""Endings that may follow the ending of a text format."""


def open_bytes(path: Path) -> io.BufferedReader | gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile:
    """The file's bytes, decompressed when its name ends in .gz, .bz2 or .xz."""
    opened = COMPRESSED.get(path.suffix.lower())
    return opened(path) if opened else path.open("rb")


def encoding_of(head: bytes) -> str:
    """utf-8-sig, or UTF-16 when a file begins with its mark or has a zero in every second byte; `head` is its start."""
    head = head[:200]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    even, odd = head[::2].count(0), head[1::2].count(0)
    if max(even, odd) > 0.4 * (len(head) // 2) and min(even, odd) == 0:
        return "utf-16-be" if even else "utf-16-le"
    return "utf-8-sig"


def open_text(path: Path) -> io.TextIOWrapper:
    """The file as text; bytes that are not valid stay visible as surrogates (see `invalid`)."""
    file = open_bytes(path)
    encoding = encoding_of(file.peek(200))
    errors = "surrogateescape" if encoding == "utf-8-sig" else "replace"
    return io.TextIOWrapper(file, encoding=encoding, errors=errors, newline="")


def read_text(path: Path) -> str:
    """The whole file; UnicodeDecodeError where it is not valid in its encoding."""
    with open_bytes(path) as file:
        data = file.read()
    return data.decode(encoding_of(data))


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a text file without their ends; only newlines end a line."""
    with decompressing(path), open_text(path) as file:
        file.reconfigure(newline=None)
        for number, line in enumerate(file, 1):
            if at := invalid(line):
                raise UsageError(f"{path}:{number}: not valid UTF-8 at byte {at} of the line: save the file as UTF-8")
            yield line.rstrip("\n")


def invalid(text: str) -> int | None:
    """Position of the first byte that was not valid UTF-8, counting bytes from 1; None when all were."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return len(text[: error.start].encode()) + 1
    return None


def shown(text: str) -> str:
    """A text with invalid bytes, printable."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")

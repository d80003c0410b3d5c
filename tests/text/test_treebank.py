"""The COCO dialect's words are Stanford's: stanford_tokens.tsv holds PTBTokenizer 3.4.1's output, punctuation dropped."""

from pathlib import Path

import pytest

from elench.text.treebank import words_coco

LINES = Path(__file__).with_name("stanford_tokens.tsv").read_text("utf-8").splitlines()
KNOWN_TO_DIFFER = {
    "No. 7 Baker Street": "whether No. is an abbreviation depends on the number after it",
    "The 3,000th visitor": "Stanford parts 3,000 from th, though not 300 from th",
}


@pytest.mark.parametrize("line", LINES)
def test_words_are_stanfords(line):
    text, theirs = line.split("\t")
    differs = any(text.startswith(start) for start in KNOWN_TO_DIFFER)
    assert (" ".join(words_coco(text)) == theirs) is not differs


def test_enough_lines_to_mean_something():
    assert len(LINES) >= 38

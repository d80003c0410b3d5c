"""Every decision has a date and is in the index with its status; every link of the index leads to a file."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
ROW = re.compile(r"^\| (\d+) \| \[.+\]\((\S+\.md)\) \| (\d{4}-\d\d-\d\d) \| \S.* \|$", re.M)


def test_every_decision_is_dated_and_in_the_index():
    rows = ROW.findall((FOLDER / "README.md").read_text(encoding="utf-8"))
    files = {path.name for path in FOLDER.glob("0*.md")}
    assert {file for _, file, _ in rows} == files and len(rows) == len(files)
    for number, file, date in rows:
        text = (FOLDER / file).read_text(encoding="utf-8")
        assert text.startswith(f"# {number}. ") and f"Date: {date}" in text, file

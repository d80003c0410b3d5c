"""Word vectors from a text file, as GloVe and fastText ship them, and from a table with a Parquet index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from elench.errors import UsageError
from elench.models.base import ModelSet
from elench.models.word_index import read_words
from elench.requests import WordVectors


def test_a_text_file_of_vectors(tmp_path: Path) -> None:
    (tmp_path / "own.vec").write_text("3 2\nking 3 4\nqueen 0 2\nPort-au-Prince 1 0\n", encoding="utf-8")
    model = ModelSet({"vectors": str(tmp_path)})["vectors"]
    (found,) = model.answer([WordVectors(("KING", "queen", "Port-au-Prince", "none"))])
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 1], [1, 0], [0, 0]], atol=1e-6)


@pytest.mark.parametrize("packed", ["snappy", "none"])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("count", [1, 37, 5000])
def test_the_words_of_a_parquet_index_are_pyarrows(tmp_path: Path, count: int, dictionary: bool, packed: str) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    words = [("na" * (i % 9)) + f"é{i % (count // 2 + 1)}" for i in range(count)]
    path = tmp_path / "index.parquet"
    limit = {"dictionary_pagesize_limit": 2000} if count == 5000 else {}  # dictionary first, then plain, as in GloVe's
    table = arrow.table({"index": words})
    parquet.write_table(table, path, compression=packed, use_dictionary=dictionary, data_page_size=900, **limit)
    assert read_words(path) == words


def test_an_index_that_is_no_parquet_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "index.parquet").write_bytes(b"PAR1 not at all")
    np.save(tmp_path / "table.npy", np.eye(2, dtype=np.float32))
    with pytest.raises(UsageError, match=r"index\.parquet: not a Parquet file"):
        assert ModelSet({"vectors": str(tmp_path)})["vectors"]

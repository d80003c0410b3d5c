"""Word vectors from a text file, as GloVe and fastText ship them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from elench.models.base import ModelSet
from elench.requests import WordVectors


def test_a_text_file_of_vectors(tmp_path: Path) -> None:
    (tmp_path / "own.vec").write_text("3 2\nking 3 4\nqueen 0 2\nPort-au-Prince 1 0\n", encoding="utf-8")
    model = ModelSet({"vectors": str(tmp_path)})["vectors"]
    (found,) = model.answer([WordVectors(("KING", "queen", "Port-au-Prince", "none"))])
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 1], [1, 0], [0, 0]], atol=1e-6)

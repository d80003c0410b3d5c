"""Formulas that several metrics share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def f_measure(precision: float, recall: float, beta: float = 1.0) -> float:
    """(1 + β²) P R / (R + β² P), 0 when both are 0; β above 1 favours recall."""
    both = recall + beta * beta * precision
    return (1 + beta * beta) * precision * recall / both if both else 0.0


def harmonic_mean(a: float, b: float) -> float:
    """2ab / (a + b); 0 unless both are positive."""
    return 2 * a * b / (a + b) if a > 0 and b > 0 else 0.0


def unit(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Rows of length 1, so that a product of two is their cosine; a row of zeros stays one."""
    scaled: npt.NDArray[np.floating] = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12)
    return scaled

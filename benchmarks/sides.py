"""Two sides of a speed benchmark: CPU seconds of each in the same process, and the same model in torch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

T = TypeVar("T")


def cpu_seconds(work: Callable[[], T]) -> tuple[T, float]:
    """What the work gives, and the CPU seconds it took in this process: other programs stretch the clock, not these."""
    begun = time.process_time()
    return work(), time.process_time() - begun


def in_torch(identity: Any) -> Any:
    """A model that ONNX Runtime would run, run by torch and transformers on the same weights."""
    from elench.models.base import load

    return load(replace(identity, runtime="torch", device="cpu"))


def one_thread() -> None:
    """Both sides on one thread; call it before torch or ONNX Runtime is used."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)


def machine() -> str:
    """What else the figures depend on."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return f"CPU seconds, 1 thread; load {load:.0f} on {os.cpu_count()} cores"

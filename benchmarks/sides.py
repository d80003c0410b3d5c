"""Two sides of a speed benchmark: CPU seconds of each in the same process, the same model in torch, and the least time
that the matrix products of a model would take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
SIZES = (512, 576, 1536)
"""Rows, width and inner width of the products whose rate is measured: those of a layer of SmolLM2."""
NOT_FACTORS = ("cosines", "sines")


def cpu_seconds(work: Callable[[], T]) -> tuple[T, float]:
    """What the work gives, and the CPU seconds it took in this process: other programs stretch the clock, not these."""
    begun = time.process_time()
    return work(), time.process_time() - begun


def in_torch(identity: Any) -> Any:
    """A model that ONNX Runtime would run, run by torch and transformers on the same weights."""
    from elench.models.base import load

    return load(replace(identity, runtime="torch", device="cpu"))


def one_thread(ours: int = 1) -> None:
    """Both sides on one thread, or ONNX Runtime on more; call it before torch or ONNX Runtime is used."""
    os.environ["OMP_NUM_THREADS"] = str(ours)
    import torch

    torch.set_num_threads(1)


def machine() -> str:
    """What else the figures depend on."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return f"CPU seconds, 1 thread; load {load:.0f} on {os.cpu_count()} cores"


def product_rate(rounds: int = 10) -> float:
    """Operations per second of plain float32 products: numpy's, torch's or ONNX Runtime's, whichever is fastest."""
    import torch

    rows, width, inner = SIZES
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(size, dtype=np.float32) for size in ((rows, width), (width, inner)))
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    session = _one_product(b)
    ways = (lambda: a @ b, lambda: x @ y, lambda: session.run(None, {"a": a}))
    return 2 * rows * width * inner / min(cpu_seconds(way)[1] for _ in range(rounds) for way in ways)


def _one_product(matrix: Any) -> Any:
    """An ONNX Runtime session that multiplies its input with the matrix, on one thread."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", None]) for name in "ac"]
    node, weights = helper.make_node("MatMul", ["a", "b"], ["c"]), [numpy_helper.from_array(matrix, "b")]
    graph = helper.make_graph([node], "product", ends[:1], ends[1:], weights)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


@dataclass
class Operations:
    """Operations of matrix products with weights: two for each weight and row that it is multiplied with."""

    count: float = 0.0

    def least_seconds(self, rate: float) -> float:
        return self.count / rate


@contextmanager
def counted_operations() -> Iterator[Operations]:
    """Count what ONNX Runtime multiplies with weights inside; sessions must be made inside, too."""
    from elench.models.onnx_session import OnnxSession

    made, found = (OnnxSession.__init__, OnnxSession.run, OnnxSession.run_held), Operations()

    def begin(self: Any, graph: Any, weights: Any) -> None:
        self.factors = {k: v.size for k, v in weights.items() if v.ndim == 2 and k not in NOT_FACTORS}
        made[0](self, graph, weights)

    def count(self: Any, inputs: Any) -> None:
        shapes = {k: v.shape() if callable(v.shape) else v.shape for k, v in inputs.items()}
        given = {k: int(np.prod(s)) for k, s in shapes.items() if k.startswith(("layers.", "words.")) and len(s) == 2}
        rows = int(np.prod(shapes.get("embeddings", shapes.get("states"))[:-1]))
        for name, size in (self.factors | given).items():  # the writer's last matrix sees the last token of each row
            last = name == "words" and "embeddings" in shapes
            found.count += 2 * size * (shapes["embeddings"][0] if last else rows)

    def run(self: Any, inputs: Any, outputs: Any = None) -> Any:
        count(self, inputs)
        return made[1](self, inputs, outputs)

    def run_held(self: Any, inputs: Any, outputs: Any) -> Any:
        count(self, inputs)
        return made[2](self, inputs, outputs)

    OnnxSession.__init__, OnnxSession.run, OnnxSession.run_held = begin, run, run_held  # type: ignore[method-assign]
    try:
        yield found
    finally:
        OnnxSession.__init__, OnnxSession.run, OnnxSession.run_held = made  # type: ignore[method-assign]

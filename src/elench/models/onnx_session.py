"""ONNX Runtime sessions: graphs that elench ships without weights, weights put in when a session is made."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from elench.errors import MissingModel
from elench.models.checkpoints import need
from elench.models.shipped import SHIPPED

if TYPE_CHECKING:
    from onnxruntime import OrtValue

Array = npt.NDArray[Any]
GRAPHS = SHIPPED / "graphs"
KINDS = {"F32": np.float32, "F16": np.float16, "I64": np.int64, "I8": np.int8}
"""Number types of safetensors files."""
BLOCK = 512
"""Rows of a matrix that are turned or rounded at once: few enough to stay near the processor."""


@cache
def tensors(path: Path) -> Mapping[str, Array]:
    """The tensors of a safetensors file, mapped into memory: read when used, shared by all processes that use them."""
    content = np.memmap(path, mode="r", dtype=np.uint8)
    size = int(content[:8].view("<u8")[0])
    header = json.loads(content[8 : 8 + size].tobytes())
    found: dict[str, Array] = {}
    for name, entry in header.items():
        if name != "__metadata__":
            a, b = (8 + size + offset for offset in entry["data_offsets"])
            found[name] = content[a:b].view(KINDS[entry["dtype"]]).reshape(entry["shape"])
    return found


def threads() -> int:
    """Processor threads of a session: OMP_NUM_THREADS, else all cores."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return int(wanted) if wanted.isdigit() and int(wanted) else os.cpu_count() or 1


class OnnxSession:
    """A graph with its weights, ready to run."""

    def __init__(self, graph: str | bytes, weights: Mapping[str, Array]) -> None:
        need("onnxruntime")
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads()
        options.log_severity_level = 3
        # planning which value takes the place of which is slow in a large graph, and the values are freed all the same
        options.enable_mem_reuse = False
        # in the order of the graph: else all weights that are brought to float32 would be so at once
        options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
        # a worker waiting for its next batch must not burn a core
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        arrays = {name: np.ascontiguousarray(values) for name, values in weights.items()}
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(a) for a in arrays.values()]
        options.add_external_initializers(list(arrays), values)
        self.inner = onnxruntime.InferenceSession(_bytes(graph), options, providers=["CPUExecutionProvider"])

    def run(self, inputs: Mapping[str, Array], outputs: list[str] | None = None) -> list[Array]:
        found: list[Array] = self.inner.run(outputs, dict(inputs))
        return found

    def run_held(self, inputs: Mapping[str, OrtValue], outputs: list[str]) -> list[OrtValue]:
        """As `run`, on values that ONNX Runtime holds: what goes from one run to the next is not copied."""
        found: list[OrtValue] = self.inner.run_with_ort_values(outputs, dict(inputs))
        return found


def held(values: Array) -> OrtValue:
    """An array as ONNX Runtime's own value, not copied where it lies in one piece."""
    import onnxruntime

    return onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(values))


def _bytes(graph: str | bytes) -> bytes:
    if isinstance(graph, bytes):
        return graph
    try:
        return (GRAPHS / f"{graph}.onnx").read_bytes()
    except OSError:
        raise MissingModel(f"no graph {graph} in {GRAPHS}; write it: elench train graphs") from None


def factor(name: str, *matrices: Array, int8: bool = False) -> dict[str, Array]:
    """Matrices (outputs × inputs) as the graphs multiply them: inputs × outputs, one beside the other.

    In float32, or as 8-bit integers with one scale per output (`NAME:scale`).
    """
    size = sum(map(len, matrices))
    made = np.empty((matrices[0].shape[1], size), np.int8 if int8 else np.float32)
    scales = np.empty(size, np.float32)
    at = 0
    for matrix in matrices:
        for a in range(0, len(matrix), BLOCK):
            rows = matrix[a : a + BLOCK].astype(np.float32, copy=int8)
            end = at + len(rows)
            if int8:
                scales[at:end] = np.maximum(np.abs(rows).max(axis=1), 1e-12) / np.float32(127)
                rows /= scales[at:end, None]
                np.rint(rows, out=rows)
            made[:, at:end] = rows.T
            at = end
    return {name: made, f"{name}:scale": scales} if int8 else {name: made}

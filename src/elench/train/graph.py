"""Building an ONNX graph without weights: they are declared with shape and type and put in when a session is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

OPSET, IR, MICROSOFT = 21, 10, "com.microsoft"
FLOAT, FLOAT16, INT64, INT32, UINT8, INT8 = (
    TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8, TensorProto.INT8,
)  # fmt: skip


@dataclass
class Graph:
    """A graph under construction: nodes, declared weights, inputs and outputs."""

    int8: bool = False
    nodes: list[NodeProto] = field(default_factory=list)
    weights: dict[str, TensorProto] = field(default_factory=dict)
    inputs: list[ValueInfoProto] = field(default_factory=list)
    outputs: list[ValueInfoProto] = field(default_factory=list)
    quantised: dict[str, tuple[str, str]] = field(default_factory=dict)

    def input(self, name: str, kind: int, shape: list[int | str]) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name: str, kind: int, shape: list[int | str]) -> None:
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def weight(self, name: str, *shape: int, kind: int = FLOAT) -> str:
        """Declare a weight; its values come when a session is made."""
        tensor = TensorProto(name=name, data_type=kind, dims=shape, data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value="weights")
        self.weights[name] = tensor
        return name

    def constant(self, name: str, values: npt.ArrayLike) -> str:
        """A small constant that belongs to the structure."""
        self.weights.setdefault(name, numpy_helper.from_array(np.asarray(values), name))
        return name

    def shape(self, *sizes: int) -> str:
        return self.constant("shape" + "".join(f"_{n}" for n in sizes), np.array(sizes, np.int64))

    def node(self, op: str, inputs: list[str], name: str | list[str], domain: str = "", **attributes: Any) -> Any:
        outputs = [name] if isinstance(name, str) else name
        self.nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0], domain=domain, **attributes))
        return name

    def linear(self, x: str, name: str, rows: int, columns: int) -> str:
        """x · W without a bias; in int8, x is rounded row by row and the result scaled back."""
        if not self.int8:
            return str(self.node("MatMul", [x, self.weight(name, rows, columns)], f"{name}.out"))
        whole, scale = self.quantised.get(x) or self.quantise(x, rows)
        weight = [self.weight(name, rows, columns, kind=INT8), self.weight(f"{name}:scale", columns)]
        one = self.constant("one", np.array(1, np.float32))
        middle = self.constant("middle", np.array(128, np.uint8))
        made = self.node("MatMulIntegerToFloat", [whole, weight[0], one, weight[1], middle], f"{name}.whole", MICROSOFT)
        return str(self.node("Mul", [made, scale], f"{name}.out"))

    def quantise(self, x: str, width: int) -> tuple[str, str]:
        """Each row of x as unsigned bytes around 128, and the scale of each row."""
        axes = self.constant("last", np.array([-1], np.int64))
        most = self.node("ReduceMax", [self.node("Abs", [x], f"{x}.abs"), axes], f"{x}.most", keepdims=1)
        least = self.constant("least", np.array(1e-12, np.float32))
        step = self.constant("step", np.array(1 / 127, np.float32))
        scale = self.node("Mul", [self.node("Max", [most, least], f"{x}.top"), step], f"{x}.scale")
        flat = self.node("Reshape", [x, self.shape(-1, width)], f"{x}.flat")
        steps = self.node("Reshape", [scale, self.shape(-1)], f"{x}.steps")
        middle = self.constant("middle", np.array(128, np.uint8))
        zeros = self.node("Expand", [middle, self.node("Shape", [steps], f"{x}.count")], f"{x}.zeros")
        coded = self.node("QuantizeLinear", [flat, steps, zeros], f"{x}.coded", axis=0)
        whole = self.node("Reshape", [coded, self.node("Shape", [x], f"{x}.size")], f"{x}.bytes")
        self.quantised[x] = whole, scale
        return whole, scale

    def model(self) -> ModelProto:
        graph = helper.make_graph(self.nodes, "elench", self.inputs, self.outputs, list(self.weights.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR, producer_name="elench")

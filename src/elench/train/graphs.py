"""Write the ONNX graphs of the embedded models: structure only, weights are put in when a session is made.

    elench train graphs            # into packages/elench-models/elench_models/graphs

A graph is a few dozen kB; its initialisers are declared with shape and type and no data. The same command writes the
same bytes. Three kinds: BERT-like encoders (MiniLM, MPNet), DeBERTa, and Llama-like language models (SmolLM2).
Encoders and the writer exist in float32 and in int8, where the matrix products multiply 8-bit integers: weights have
one scale per column, inputs one per row, so that no answer depends on what else is in its batch.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elench.train.bert_graphs import MPNET, BertShape, bert, masked_head
from elench.train.deberta_graphs import XSMALL, deberta
from elench.train.llama_graphs import LlamaShape, llama, llama_head, llama_writer

if TYPE_CHECKING:
    from onnx import ModelProto


def graphs() -> dict[str, ModelProto]:
    """Every graph that is shipped, by file name."""
    made: dict[str, ModelProto] = {}
    for int8 in (False, True):
        end = "-int8" if int8 else ""
        made[f"deberta{end}"] = deberta(XSMALL, int8)
        for name, shape in (("minilm", BertShape()), ("mpnet", MPNET)):
            made |= {f"{name}-{n}{end}": bert(replace(shape, layers=n), int8) for n in range(1, shape.layers + 1)}
            made[f"{name}-relate{end}"] = bert(shape, int8, relate=True)
    made |= {"minilm-masked": masked_head(BertShape()), "mpnet-masked": masked_head(MPNET)}
    for half, end in ((True, ""), (False, "-float32")):  # as the checkpoint stores its weights
        made |= {f"smollm{end}": llama(LlamaShape(), half), f"smollm-head{end}": llama_head(LlamaShape(), half)}
    made |= {f"smollm-write{end}": llama_writer(LlamaShape(), bool(end)) for end in ("", "-int8")}
    return made


@click.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder; default: that of elench-models.")
def command(out: Path | None) -> None:
    """Write the ONNX graphs of the embedded models (structure only, no weights)."""
    from elench.models.onnx_session import GRAPHS

    folder = out or GRAPHS
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in graphs().items():
        content = model.SerializeToString(deterministic=True)
        (folder / f"{name}.onnx").write_bytes(content)
        click.echo(f"{name}.onnx  {len(content):,} bytes")

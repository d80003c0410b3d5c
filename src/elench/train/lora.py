"""LoRA: train small adapters of a model's linear layers, and add them to the weights afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch.nn import Module

LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""The linear layers of a Llama-like model: attention and feed-forward."""


def _adapted() -> type[Module]:
    """The layer's class; made on first use, because torch is imported only then."""
    import torch

    class Adapted(torch.nn.Module):
        """A frozen linear layer plus `scale · B A x`, where A and B have few rows and columns."""

        def __init__(self, linear: torch.nn.Linear, rank: int, scale: float) -> None:
            super().__init__()
            self.linear = linear
            self.down = torch.nn.Parameter(torch.empty(rank, linear.in_features))
            self.up = torch.nn.Parameter(torch.zeros(linear.out_features, rank))
            torch.nn.init.kaiming_uniform_(self.down, a=5**0.5)
            self.scale = scale

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.linear(x)
            small = torch.nn.functional.linear(x, self.down) * self.scale
            return out + torch.nn.functional.linear(small, self.up)

    return Adapted


def adapt(model: Module, rank: int = 16, scale: float = 2.0, skip: int = 0) -> Module:
    """Freeze the model and give each linear layer a trainable LoRA adapter.

    The lowest `skip` blocks are left as they are: gradients then need not go down to them, which saves time.
    """
    kind = _adapted()
    for p in model.parameters():
        p.requires_grad_(False)
    for block in model.model.layers[skip:]:
        for parent in list(block.modules()):
            for name, child in list(parent.named_children()):
                if name in LAYERS:
                    setattr(parent, name, kind(child, rank, scale))
    return model


def merge(model: Module) -> Module:
    """Add the adapters to the weights: the adapted model as plain linear layers, as fast as the original."""
    import torch

    with torch.no_grad():
        for parent in list(model.modules()):
            for name, child in list(parent.named_children()):
                if name in LAYERS and hasattr(child, "linear"):
                    child.linear.weight += child.scale * (child.up @ child.down)
                    setattr(parent, name, child.linear)
    return model

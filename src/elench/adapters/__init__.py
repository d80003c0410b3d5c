"""Integrations: torchmetrics, Hugging Face evaluate, datasets.map, pandas, pytest, HTTP, rewards.

Nothing is imported before it is used: pytest loads the plugin in this package in every session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elench.adapters.columns import add_scores, map_scores

__all__ = ["add_scores", "map_scores"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from elench.adapters import columns

        return getattr(columns, name)
    raise AttributeError(f"module 'elench.adapters' has no attribute {name!r}")

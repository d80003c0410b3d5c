"""What every model offers the engine, and the set of models that play the roles in a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar

from quaestor.errors import UsageError
from quaestor.models.packing import pack
from quaestor.requests import Request

ROLES = (
    "encoder", "causal", "masked", "seq2seq", "reader", "asker", "keyphrases", "classes", "weights", "parser",
    "vectors", "translator",
)  # fmt: skip


class Model(ABC):
    """Answers requests of one role, a batch at a time. No answer may depend on what else is in the batch."""

    role: ClassVar[str]
    name: str
    sha256: str
    """Hash over the model's files: part of the signature and of every cache key."""
    budget: int = 4096
    """Tokens (padding included) that a batch may hold."""

    @abstractmethod
    def lengths(self, requests: Sequence[Request[Any]]) -> list[int]:
        """Tokens of each request, or a cheap estimate: what batches are sorted and packed by."""

    @abstractmethod
    def answer(self, batch: Sequence[Request[Any]]) -> Sequence[Any]:
        """The answers, in the order of the batch."""

    def batches(self, requests: Sequence[Request[Any]]) -> list[list[int]]:
        """How to group the open requests: sorted by length, packed by the token budget, unless a model knows better."""
        return pack(self.lengths(requests), self.budget)


@dataclass(frozen=True)
class ModelChoice:
    """Which model plays a role, and how: everything that could change its answers."""

    role: str
    name: str | None = None
    """Catalog name, hub name or folder; None takes the family's own."""
    family: str = "embedded"
    """embedded (small, offline) or paper (the checkpoints the papers used)."""
    dtype: str = "float32"
    device: str | None = None
    pull: bool = False
    """Whether a missing model may be fetched now."""


def load_model(choice: ModelChoice) -> Model:
    """The model that plays a role; UsageError names a folder or hub model that cannot play it."""
    try:
        found: Model = import_module(f"quaestor.models.{choice.role}").load(choice)
        return found
    except (OSError, ValueError, KeyError, RuntimeError) as problem:
        if choice.name is None:
            raise
        why = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        raise UsageError(f"--model {choice.role}={choice.name}: is no model for this role ({why})") from problem


@dataclass
class ModelSet:
    """The models of a run, loaded when first asked; `models[role]` is a Model."""

    names: Mapping[str, str] = field(default_factory=dict)
    family: str = "embedded"
    dtype: str = "float32"
    device: str | None = None
    pull: bool = False
    loaded: dict[str, Model] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for role in self.names:
            if role not in ROLES:
                raise UsageError(f"no role is called {role!r}; roles: {', '.join(ROLES)}")

    def choice(self, role: str) -> ModelChoice:
        return ModelChoice(role, self.names.get(role), self.family, self.dtype, self.device, self.pull)

    def __getitem__(self, role: str) -> Model:
        """Each role has a module `quaestor.models.ROLE` with `load(choice) -> Model`."""
        if role == "baselines":  # not a model of its own: stored figures about the encoder and the causal model
            from quaestor.models.baselines import Baselines

            return self.loaded.setdefault(role, Baselines(self))
        if role not in self.loaded:
            self.loaded[role] = load_model(self.choice(role))
        return self.loaded[role]

    def fingerprint(self, role: str) -> str:
        """`role=name@first 12 digits of the hash`, for signatures and for refusing to resume with another model."""
        model = self[role]
        return f"{role}={model.name}@{model.sha256[:12]}"

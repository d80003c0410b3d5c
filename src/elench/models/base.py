"""Models: who plays which role in a run, found before it is loaded.

`resolve(choice)` names the model of a role without reading its weights: an Identity, from which signatures and cache
keys are made. `load(identity)` reads it. Both call the module of the role, `elench.models.ROLE` (MODULES names the
exceptions), which has two functions of the same names.

A new classifier needs no code here: store it with `elench.models.shipped.save_shipped` in `elench_models/ROLE/`, add
ROLE to ROLES and to MODULES as "classifier", and ask it from a metric:

    chances = await Classify("support", first=sentence, second=passage)      # {label: probability}

`first` and `second` are the two texts of the pair ([CLS] first [SEP] second [SEP]); leave `second` empty for a
classifier of one text. `settings` of the stored config: `labels` (in the order of the outputs), optionally
`temperature` (logits are divided by it) and `window` (tokens read at once, default 256). Long pairs: only the longer
text is split, into even parts; the parts' probabilities are averaged. The head is known by the names of the stored
tensors, see `elench.models.classifier`.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Generic, TypeVar

from elench.errors import ElenchError, UsageError
from elench.models.catalog import family_entry, is_gguf, is_url
from elench.models.packing import pack
from elench.requests import Request

R = TypeVar("R", bound=Request[object])
A = TypeVar("A")

ROLES = (
    "encoder", "causal", "masked", "seq2seq", "reader", "asker", "keyphrases", "classes", "weights", "support",
    "equivalent", "wellformed", "parser", "vectors", "translator", "judge", "bleurt", "comet", "ctc",
)  # fmt: skip
MODULES = {
    "support": "classifier", "equivalent": "classifier", "wellformed": "classifier",
    "bleurt": "packages", "comet": "packages", "ctc": "packages",
}  # fmt: skip
"""The module of a role, where it is not called like the role."""


@dataclass(frozen=True)
class ModelChoice:
    """What the user asked for: which model plays a role, and how."""

    role: str
    name: str | None = None
    """Catalog name, hub name, folder, GGUF file or URL; None takes the family's own."""
    family: str = "embedded"
    """embedded (small, offline), large and large-lm (embedded where they have no model of their own) or paper."""
    dtype: str = "float32"
    device: str | None = None
    pull: bool = False
    """Whether a missing model may be fetched now."""


@dataclass(frozen=True)
class Identity:
    """A model that is on this machine, and how it will run: everything that could change its answers."""

    role: str
    name: str
    sha256: str
    """Hash over the model's files."""
    runtime: str = "python"
    """onnx, torch, spacy, or python for models that need no runtime."""
    dtype: str = "float32"
    """The number type it really computes in, whatever was asked for."""
    device: str = "cpu"
    """auto: a GPU where torch finds one."""
    kind: str = "checkpoint"
    """How the role's module loads it."""
    folder: Path = Path()
    base: Path | None = None
    """Folder of the base model that a shipped model was trained on."""
    asked: str | None = None
    """What the user called it; None for a default."""

    @property
    def key(self) -> str:
        """Hash for cache keys: files, runtime and number type."""
        return hashlib.sha256(f"{self.sha256} {self.runtime} {self.dtype}".encode()).hexdigest()

    def runs_as(self, dtype: str, device: str | None) -> bool:
        """Whether the model runs in this number type (float32 asks for none) and on this device (None: wherever)."""
        return dtype in ("float32", self.dtype) and (device is None or self.device in ("auto", device))

    def __str__(self) -> str:
        """`role=name@first 12 digits of the hash/runtime/dtype`, as printed in signatures."""
        return f"{self.role}={self.name}@{self.sha256[:12]}/{self.runtime}/{self.dtype}"


class Model(ABC, Generic[R, A]):
    """Answers requests of one role, a batch at a time. No answer may depend on what else is in the batch."""

    role: ClassVar[str]
    identity: Identity | None = None
    """Set by `load`, like name and sha256."""
    name: str = ""
    sha256: str = ""
    budget: int = 4096
    """Tokens (padding included) that a batch may hold."""

    @abstractmethod
    def lengths(self, requests: Sequence[R]) -> list[int]:
        """Tokens of each request, or a cheap estimate: what batches are sorted and packed by."""

    @abstractmethod
    def answer(self, batch: Sequence[R]) -> Sequence[A]:
        """The answers, in the order of the batch."""

    def batches(self, requests: Sequence[R]) -> list[list[int]]:
        """How to group the open requests: sorted by length, packed by the token budget, unless a model overrides it."""
        return pack(self.lengths(requests), self.budget)

    def answer_all(self, requests: Sequence[R]) -> list[A]:
        """Answers to any number of requests, in their order: each asked once, in batches."""
        distinct = list(dict.fromkeys(requests))
        found: dict[R, A] = {}
        for group in self.batches(distinct):
            batch = [distinct[i] for i in group]
            found.update(zip(batch, self.answer(batch), strict=True))
        return [found[request] for request in requests]


AnyModel = Model[Any, Any]
"""A model known only by its role: what it answers is in the types of the requests."""


def _module(role: str) -> ModuleType:
    return import_module(f"elench.models.{MODULES.get(role, role)}")


SEVERAL = {"http": "elench.models.http", "gguf": "elench.models.llama_cpp"}
"""The modules of models that can play several roles: a server, a GGUF file."""


@contextmanager
def _named(role: str, asked: str | None) -> Iterator[None]:
    """Whatever a user's own model makes a library raise becomes one line; elench's own models hide no bug."""
    try:
        yield
    except ElenchError:
        raise
    except Exception as problem:
        if asked is None:
            raise
        why = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        raise UsageError(f"--model {role}={asked}: cannot serve as this role ({why})") from problem


def resolve(choice: ModelChoice) -> Identity:
    """The model that plays a role, without reading its weights; MissingModel names the command that gets it."""
    with _named(choice.role, choice.name):
        kind = "http" if is_url(choice.name) else "gguf" if is_gguf(choice.name, choice.role, choice.family) else ""
        found: Identity = (import_module(SEVERAL[kind]) if kind else _module(choice.role)).resolve(choice)
    return found


def load(identity: Identity) -> AnyModel:
    """Read a model; UsageError if a folder or hub model cannot serve as its role."""
    with _named(identity.role, identity.asked):
        module = import_module(SEVERAL[identity.kind]) if identity.kind in SEVERAL else _module(identity.role)
        model: AnyModel = module.load(identity)
    model.identity, model.name, model.sha256 = identity, identity.name, identity.sha256
    return model


def load_model(choice: ModelChoice) -> AnyModel:
    """The model a choice names, found and read."""
    return load(resolve(choice))


@dataclass
class ModelSet:
    """The models of a run: `models.identity(role)` reads no weights, `models[role]` loads when first asked."""

    names: Mapping[str, str] = field(default_factory=dict)
    family: str = "embedded"
    dtype: str = "float32"
    device: str | None = None
    pull: bool = False
    loaded: dict[str, AnyModel] = field(default_factory=dict)
    resolved: dict[str, Identity] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for role in self.names:
            if role not in ROLES:
                raise UsageError(f"no role is called {role!r}; roles: {', '.join(ROLES)}")

    def choice(self, role: str) -> ModelChoice:
        """What a run asks for in a role; large-lm is a judge, the other roles are the embedded ones."""
        own = self.family != "large-lm" or getattr(family_entry(role, "large-lm"), "family", "") == "large-lm"
        family = self.family if own else "embedded"
        return ModelChoice(role, self.names.get(role), family, self.dtype, self.device, self.pull)

    def identity(self, role: str) -> Identity:
        """Which model plays a role, without loading it."""
        if role in self.loaded:
            model = self.loaded[role]  # one put in by hand need not derive from Model
            known: Identity | None = getattr(model, "identity", None)
            return known or Identity(role, model.name, model.sha256)
        if role not in self.resolved:
            self.resolved[role] = resolve(self.choice(role))
        return self.resolved[role]

    def __getitem__(self, role: str) -> AnyModel:
        if role not in self.loaded:
            self.loaded[role] = load(self.identity(role))
        return self.loaded[role]

    def fingerprint(self, role: str) -> str:
        """A role's model as signatures print it."""
        return str(self.identity(role))

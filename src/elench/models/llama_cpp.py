"""Language models in GGUF files, run by llama.cpp inside this process: judge, reader, asker, support.

They get the prompts that a server gets (`elench.models.http`), and their answers are read in the same way. llama.cpp
gives no log-probabilities of the prompt, so they cannot be the causal model.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from elench.errors import MissingExtra, Unscored, UsageError
from elench.models.base import Identity, Model, ModelChoice
from elench.models.catalog import combined, entry
from elench.models.checkpoints import Checkpoint, find, remembered_hash
from elench.models.http import PROMPTS, Remote
from elench.models.http_client import Limits
from elench.models.onnx_session import threads
from elench.requests import Failure, Request

WINDOW = 8192
"""Tokens of prompt and answer together; a longer prompt leaves its record unscored."""


def resolve(choice: ModelChoice) -> Identity:
    """The file and llama.cpp's version; the role's prompt counts too, because it changes the answers."""
    asked = f"--model {choice.role}={choice.name or 'GGUF'}"
    if choice.role not in PROMPTS or choice.role == "causal":
        roles = ", ".join(role for role in PROMPTS if role != "causal")
        raise UsageError(f"{asked}: a GGUF file can serve as {roles}; not as {choice.role}")
    found = find(choice) if choice.name is None or entry(choice.name) else _file(choice.name, asked)
    try:
        runtime = f"xllamacpp-{version('xllamacpp')}"
    except PackageNotFoundError:
        raise MissingExtra(f"{found.name} (llama.cpp)", "llama") from None
    said = PROMPTS[choice.role]
    digest = hashlib.sha256(f"{found.sha256} {said}".encode()).hexdigest() if said else found.sha256
    return Identity(choice.role, found.name, digest, runtime, "gguf", "cpu", "gguf", found.folder, asked=choice.name)


def _file(name: str, asked: str) -> Checkpoint:
    path = Path(name).expanduser()
    if not path.is_file():
        raise UsageError(f"{asked}: no such file")
    return Checkpoint(path.name, path, combined({path.name: remembered_hash(path)}), "file")


def load(identity: Identity) -> Model[Request[object], object]:
    import xllamacpp

    path = identity.folder if identity.folder.is_file() else next(identity.folder.glob("*.gguf"))
    settings = xllamacpp.CommonParams()
    settings.model.path, settings.n_ctx, settings.n_parallel = str(path), WINDOW, 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads()
    settings.no_extra_bufts = True  # the same kernels for few and many tokens: no answer depends on earlier ones
    settings.warmup, settings.ui, settings.verbosity = False, False, -1
    settings.port, settings.api_keys = 0, [secrets.token_hex()]  # it also listens on loopback: for nobody
    return Remote(identity.role, identity.name, InProcess(xllamacpp.Server(settings)))


class InProcess:
    """llama.cpp in the place of a server's client."""

    limits = Limits(concurrency=1)

    def __init__(self, server: Any) -> None:
        self.server = server
        self.last: dict[str, Any] = {}

    def post_all(self, path: str, bodies: Sequence[dict[str, object]]) -> list[object]:
        """The answers in order; a Failure with llama.cpp's reason in the place of one that could not be had."""
        return [self._post(body) for body in bodies]

    def _post(self, body: dict[str, Any]) -> Any:
        fresh = body == self.last  # of a prompt read before only one token would be read again, by another kernel
        self.last = body
        answer = self.server.handle_chat_completions({**body, "cache_prompt": not fresh})
        if "error" in answer:
            return Failure(Unscored(f"llama.cpp: {answer['error'].get('message', answer['error'])}"))
        return answer

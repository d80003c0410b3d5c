"""Models behind a URL: `--model reader=http://127.0.0.1:8080/v1#name` lets an OpenAI-compatible server play a role.

reader, asker, support and judge ask for a chat completion at temperature 0; causal asks for the log-probabilities of
the prompt itself (`/completions` with `echo`), which not every server gives. The prompts are part of the identity, so
that signatures and cached answers change with them.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from elench.errors import Unscored, UsageError
from elench.models.base import Identity, Model, ModelChoice
from elench.models.http_client import Client, Limits
from elench.requests import Ask, Choice, Choose, Classify, Continue, Failure, Read, Reading, Request, TokenScores
from elench.text.answers import exact, f1

UNANSWERABLE = "unanswerable"
TOP = 20
"""Most probable tokens asked for at each place."""
LEAST = 0.01
"""Probability that the options must have together where none of them was written."""
PROMPTS = {
    "reader": (
        "Answer the question with the shortest passage copied from the text, and nothing else. If the text does not "
        "answer it, write: unanswerable\n\nText: {text}\n\nQuestion: {question}"
    ),
    "asker": ('Write one question about the text whose answer is "{answer}". Write only the question.\n\nText: {text}'),
    "support": (
        "Does the text support the claim? Answer with one word: supported, contradicted, or missing if the text does "
        "not say.\n\nText: {second}\n\nClaim: {first}"
    ),
    "judge": "",
    "causal": "",
}
SUPPORT = {"supported": "supported", "contradicted": "contradicted", "missing": "not found"}
"""The word the server writes → the label."""


def resolve(choice: ModelChoice) -> Identity:
    """Ask the server which model it serves; the answer, the role's prompt and the settings are the identity."""
    assert choice.name is not None
    if choice.role not in PROMPTS:
        roles = ", ".join(PROMPTS)
        raise UsageError(f"--model {choice.role}={choice.name}: a server can serve as {roles}; not as {choice.role}")
    base, _, name = choice.name.partition("#")
    base = base.rstrip("/")
    served = (Client(base).get("/models") or {}).get("data")
    known = [m for m in served if isinstance(m, dict)] if isinstance(served, list) else []
    name = name or (str(known[0].get("id", "")) if len(known) == 1 else "")
    if not name:
        ids = ", ".join(str(m.get("id")) for m in known[:8]) or "it names none"
        raise UsageError(f"--model {choice.role}={choice.name}: name the model: {base}#NAME ({ids})")
    about = next((m for m in known if m.get("id") == name), {})
    stable = {key: value for key, value in about.items() if key in ("root", "meta")}
    shown = name.rpartition("/")[2] if name.startswith("/") else name  # llama.cpp calls a model by its path
    where = "" if stable.get("meta") else base  # a server that describes its weights may move
    said = json.dumps([where, shown, stable.get("meta"), stable.get("root"), PROMPTS[choice.role], TOP], sort_keys=True)
    digest = hashlib.sha256(said.encode()).hexdigest()
    return Identity(choice.role, shown, digest, "http", "server", kind="http", asked=f"{base}#{name}")


def load(identity: Identity) -> Model[Request[object], object]:
    base, _, served = str(identity.asked).partition("#")
    return Remote(identity.role, served, Client(base))


class Answering(Protocol):
    """Who takes the requests: a server's client, or llama.cpp in this process."""

    @property
    def limits(self) -> Limits: ...

    def post_all(self, path: str, bodies: Sequence[dict[str, object]]) -> list[object]: ...


class Remote(Model[Request[object], object]):
    """A role played by a language model that is asked in words."""

    def __init__(self, role: str, served: str, client: Answering) -> None:
        self.role = role  # type: ignore[misc]  # one class for five roles
        self.served, self.client = served, client

    def lengths(self, requests: Sequence[Request[object]]) -> list[int]:
        return [1] * len(requests)

    def batches(self, requests: Sequence[Request[object]]) -> list[list[int]]:
        """Small groups: what a group answered is kept on disk before the next one is asked."""
        size = 4 * self.client.limits.concurrency
        return [list(range(a, min(a + size, len(requests)))) for a in range(0, len(requests), size)]

    def answer(self, batch: Sequence[Request[object]]) -> list[Any]:
        asks = [ASKS[type(request)] for request in batch]
        bodies = [{"model": self.served, **ask.body(request)} for ask, request in zip(asks, batch, strict=True)]
        path = "/completions" if self.role == "causal" else "/chat/completions"
        answers = self.client.post_all(path, bodies)
        return [_understood(ask, r, a) for ask, r, a in zip(asks, batch, answers, strict=True)]


class Exchange:
    """How one kind of request is put to a server, and how the answer is read."""

    def __init__(self, body: Callable[[Any], dict[str, Any]], read: Callable[[Any, Any], Any]) -> None:
        self.body, self.read = body, read


def _understood(ask: Exchange, request: Request[object], answer: Any) -> Any:
    """The typed answer, or a Failure that says what the server said instead."""
    if isinstance(answer, Failure):
        return answer
    try:
        choices = answer.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise Unscored(f"the server's answer has no choices: {json.dumps(answer)[:120]}")
        return ask.read(request, choices[0])
    except Unscored as reason:
        return Failure(reason)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as problem:
        return Failure(Unscored(f"the server's answer cannot be read ({type(problem).__name__}: {problem})"))


def _chat(prompt: str, tokens: int) -> dict[str, Any]:
    return {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": tokens,
        "temperature": 0,
        "seed": 0,
        "logprobs": True,
        "top_logprobs": TOP,
    }


def _written(choice: Mapping[str, Any]) -> str:
    content = choice["message"]["content"]
    if not isinstance(content, str) or not content.strip():
        raise Unscored("the server wrote nothing")
    return content.strip()


def _tokens(choice: Mapping[str, object]) -> list[dict[str, object]]:
    """The written tokens with their probabilities; empty where the server gives none."""
    logprobs = choice.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    usable = isinstance(tokens, list) and all(_probability(t) is not None for t in tokens)
    return tokens if usable and tokens is not None else []


def _probability(token: object) -> float | None:
    value = token.get("logprob") if isinstance(token, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or value > 1e-3:
        return None
    return math.exp(min(value, 0.0))


def choose(written: str, tokens: Sequence[Mapping[str, Any]], options: Sequence[str]) -> Choice:
    """Which option the server chose: probabilities at the token where it says so; else the option it wrote; else, of
    a model that talks around it, the probabilities the options had at the first token."""
    for place, token in enumerate(tokens):
        following = str(tokens[place + 1].get("token", "")) if place + 1 < len(tokens) else ""
        if (
            _option(str(token.get("token", "")), options) and not following[:1].isdigit()
        ):  # the 1 of 1902 is not a rating
            shares = _shares(token, options)
            if total := sum(shares.values()):
                return Choice({option: share / total for option, share in shares.items()}, written, True)
    found = [o for o in options if o.lower() in [w.strip(".,:;!*\"'()[]").lower() for w in written.split()]]
    if len(found) == 1:
        return Choice({option: float(option == found[0]) for option in options}, written, False)
    if tokens and not found and not _option(str(tokens[0].get("token", "")), options):
        shares = _shares(tokens[0], options)
        if (total := sum(shares.values())) >= LEAST:
            return Choice({option: share / total for option, share in shares.items()}, written, True)
    what = "none" if not found else "several"
    raise Unscored(f"the server wrote {written[:60]!r}: {what} of the options {', '.join(options)}")


def _shares(token: Mapping[str, Any], options: Sequence[str]) -> dict[str, float]:
    """Probability of each option at one place."""
    shares = dict.fromkeys(options, 0.0)
    for other in token.get("top_logprobs") or [token]:
        probability = _probability(other)
        option = _option(str(other.get("token", "")), options) if probability is not None else None
        if option and probability is not None:
            shares[option] += probability
    return shares


def _option(token: str, options: Sequence[str]) -> str | None:
    """The option that a token is, or begins (a word may be several tokens; numbers must be whole)."""
    text = token.strip().strip("*\"'").lower()
    if not text:
        return None
    same = [o for o in options if o.lower() == text]
    begun = [o for o in options if len(text) > 1 and not text.isdigit() and o.lower().startswith(text)]
    return same[0] if same else begun[0] if len(begun) == 1 else None


def _read_choice(request: Choose, choice: Mapping[str, Any]) -> Choice:
    return choose(_written(choice), _tokens(choice), request.options)


def _read_support(request: Classify, choice: Mapping[str, Any]) -> dict[str, float]:
    found = choose(_written(choice), _tokens(choice), tuple(SUPPORT)).probabilities
    return {label: found[word] for word, label in SUPPORT.items()}


def _read_answer(request: Read, choice: Mapping[str, Any]) -> Reading:
    written, tokens = _written(choice), _tokens(choice)
    answer = written.splitlines()[0].strip().strip('"“”').rstrip(".") or written
    confidence = math.prod(_probability(t) or 0.0 for t in tokens) if tokens else 1.0
    none = answer.lower().startswith(UNANSWERABLE)
    unanswerable = confidence if none else _none_at_first(tokens)
    place = -1 if none else request.text.lower().find(answer.lower())
    span = (place, place + len(answer)) if place >= 0 else None
    given = "" if none else answer if span is None else request.text[span[0] : span[1]]
    gold = overlap = None
    if request.gold is not None:
        gold = confidence if not none and exact(given, request.gold) else 0.0
        overlap = (1.0 - unanswerable) * f1(given, request.gold) if given else 0.0
    return Reading(given, span, min(unanswerable, 1.0), 0.0 if none else confidence, gold, given, overlap)


def _none_at_first(tokens: Sequence[Mapping[str, Any]]) -> float:
    """Probability that the answer would have begun with "unanswerable"."""
    first = (tokens[0].get("top_logprobs") or []) if tokens else []
    starts = [t for t in first if len(s := str(t.get("token", "")).strip().lower()) > 1 and UNANSWERABLE.startswith(s)]
    return sum(_probability(t) or 0.0 for t in starts)


def _read_question(request: Ask, choice: Mapping[str, Any]) -> tuple[str, ...]:
    lines = [line.strip().strip('"').removeprefix("Question:").strip() for line in _written(choice).splitlines()]
    questions = [line for line in lines if line.endswith("?")]
    if not questions:
        raise Unscored(f"the server wrote {lines[0][:60]!r}, which is not a question")
    return (questions[0],)


def _continue_body(request: Continue) -> dict[str, Any]:
    return {"prompt": request.prefix + request.target, "max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0}


def _read_scores(request: Continue, choice: Mapping[str, Any]) -> TokenScores:
    found = choice.get("logprobs")
    names, values, places = ((found or {}).get(k) for k in ("tokens", "token_logprobs", "text_offset"))
    whole = request.prefix + request.target
    if not (isinstance(names, list) and isinstance(values, list) and isinstance(places, list)) or places[:1] != [0]:
        raise Unscored("this server gives no log-probabilities of the prompt (echo); use a local causal model")
    kept = [k for k, place in enumerate(places) if len(request.prefix) <= place < len(whole)]
    if not kept or any(not isinstance(values[k], int | float) or not math.isfinite(values[k]) for k in kept):
        raise Unscored("the server gave no usable log-probabilities of the text")
    start = len(request.prefix)
    spans = tuple((places[k] - start, min(places[k] + len(str(names[k])), len(whole)) - start) for k in kept)
    return TokenScores(tuple(str(names[k]) for k in kept), spans, tuple(float(values[k]) for k in kept))


ASKS: dict[type[Request[object]], Exchange] = {
    Choose: Exchange(lambda r: _chat(r.prompt, 8), _read_choice),
    Classify: Exchange(lambda r: _chat(PROMPTS["support"].format(first=r.first, second=r.second), 8), _read_support),
    Read: Exchange(lambda r: _chat(PROMPTS["reader"].format(text=r.text, question=r.question), 48), _read_answer),
    Ask: Exchange(lambda r: _chat(PROMPTS["asker"].format(text=r.text, answer=r.answer), 64), _read_question),
    Continue: Exchange(_continue_body, _read_scores),
}

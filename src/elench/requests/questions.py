"""The few questions a metric may put to a model: a request each, with the type of its answer above it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from elench.requests.asking import Request
from elench.text.words import Span

Floats = npt.NDArray[np.float32]


# --- encoder ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TokenVectors:
    """A text as the encoder sees it: one row per piece, special tokens included and flagged."""

    pieces: tuple[str, ...]
    ids: tuple[int, ...]
    spans: tuple[Span, ...]
    special: tuple[bool, ...]
    vectors: Floats
    """pieces × width, of the layer asked for."""


LAST = -1
"""In the place of a layer's number: the last layer, whose mean is a sentence encoder's vector of the text."""


@dataclass(frozen=True)
class Embed(Request[TokenVectors]):
    """The encoder's vectors of a text at one layer (None: the one the catalog names for BERTScore; LAST: the last)."""

    text: str
    layer: int | None = None
    role: ClassVar[str] = "encoder"
    cached: ClassVar[bool] = False


@dataclass(frozen=True)
class Relevance:
    """How the pieces of a question attend to a context, per layer (QRelScore's LRM before the layers are joined)."""

    layers: tuple[float, ...]
    """Layer score of each encoder layer, the embedding layer not counted."""
    pieces: tuple[str, ...]
    """The question's pieces that took part."""
    matches: tuple[tuple[str, ...], ...]
    """layer × piece: the context piece that matched best."""
    strengths: tuple[tuple[float, ...], ...]
    """layer × piece: attention × cosine of that match."""
    chunks: int = 1
    """Into how many parts the context was split to fit the window; scores are their mean."""


@dataclass(frozen=True)
class Relate(Request[Relevance]):
    """Attention × cosine between a question and a context encoded in one pass, reduced inside the model call.

    attention: peak | raw | hard; aggregate: max | mean | mover; form: paper | code (METRICS.md §1).
    """

    question: str
    context: str
    attention: str = "peak"
    aggregate: str = "max"
    form: str = "paper"
    role: ClassVar[str] = "encoder"


# --- language models -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TokenScores:
    """Log-probability of each piece of a target text."""

    pieces: tuple[str, ...]
    spans: tuple[Span, ...]
    """Place of each piece in the target; (0, 0) for an end-of-text token."""
    logprobs: tuple[float, ...]
    chunks: int = 1
    """Into how many parts the target was split to fit the window."""
    cut: int = 0
    """Tokens of the prefix or source that did not fit the window."""

    @property
    def total(self) -> float:
        return sum(self.logprobs)


@dataclass(frozen=True)
class Continue(Request[TokenScores]):
    """Log-probabilities of `target` after BOS and `prefix` under the causal model.

    Requests with the same prefix share its key/value cache. Prefix and target are tokenised apart, joined as given
    (put the blank where you want it). `end` adds the end-of-text token to the target.
    """

    prefix: str
    target: str
    end: bool = False
    role: ClassVar[str] = "causal"


@dataclass(frozen=True)
class Recover(Request[TokenScores]):
    """Log-probability of each word of `answer` when it is masked in context <sep> question <sep> answer.

    form: paper masks a whole word at a time and gives one entry per *word* (summed over its pieces);
    code masks one piece at a time and gives, per piece, the mean log-probability over all positions of the sequence.
    """

    context: str
    question: str
    answer: str
    form: str = "paper"
    role: ClassVar[str] = "masked"


@dataclass(frozen=True)
class Translate(Request[TokenScores]):
    """Log-probabilities of `target` given `source` under a sequence-to-sequence model."""

    source: str
    target: str
    role: ClassVar[str] = "seq2seq"


@dataclass(frozen=True)
class Generate(Request[str]):
    """What a sequence-to-sequence model writes for `source` (greedy)."""

    source: str
    limit: int = 64
    role: ClassVar[str] = "seq2seq"


@dataclass(frozen=True)
class BackTranslate(Request[str]):
    """The text in another language and back: a paraphrase."""

    text: str
    role: ClassVar[str] = "translator"


# --- parser, vectors -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Word:
    """One token of a parsed text."""

    text: str
    lemma: str
    pos: str
    tag: str
    relation: str
    head: int
    """Index of the head word in the text; its own index for a root."""
    entity: str
    """Entity type, or ''."""
    span: Span
    stop: bool


@dataclass(frozen=True)
class Parsed:
    """A text with its words, sentences, entities and noun phrases (index ranges into `words`)."""

    words: tuple[Word, ...]
    sentences: tuple[Span, ...]
    entities: tuple[tuple[int, int, str], ...]
    phrases: tuple[Span, ...]


@dataclass(frozen=True)
class Parse(Request[Parsed]):
    """Sentences, words, lemmas, tags, entities, noun phrases and dependency edges of a text."""

    text: str
    role: ClassVar[str] = "parser"


@dataclass(frozen=True)
class WordVectors(Request[Floats]):
    """Unit-length static vectors of lower-cased words, one row each; a zero row for an unknown word."""

    words: tuple[str, ...]
    role: ClassVar[str] = "vectors"
    cached: ClassVar[bool] = False


# --- elench's own small models -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QuestionClass:
    """A question's class in the Li & Roth taxonomy: probabilities of all coarse and fine classes."""

    coarse: dict[str, float]
    fine: dict[str, float]

    @property
    def best(self) -> tuple[str, str]:
        """The most probable (coarse, fine) pair."""
        fine = max(self.fine, key=self.fine.__getitem__)
        return fine.split(":")[0], fine


@dataclass(frozen=True)
class ClassifyQuestion(Request[QuestionClass]):
    """What kind of answer a question asks for."""

    question: str
    role: ClassVar[str] = "classes"


@dataclass(frozen=True)
class Classify(Request[dict[str, float]]):
    """The probability of each label that the classifier of `role` (support, equivalent, wellformed) gives a text, or a
    pair of texts in this order."""

    role: str  # type: ignore[misc]  # one request serves several roles
    first: str
    second: str = ""


@dataclass(frozen=True)
class Rate(Request[float | None]):
    """What the metric of another project (bleurt, comet, ctc) gives a text; None where it gives nothing."""

    role: str  # type: ignore[misc]  # one request serves several roles
    text: str
    reference: str = ""
    source: str = ""


@dataclass(frozen=True)
class WordWeights:
    """Words of an answer with the probability that each belongs to the keyphrase."""

    words: tuple[str, ...]
    spans: tuple[Span, ...]
    weights: tuple[float, ...]
    pieces: tuple[str, ...] = ()
    """The model's own pieces, and their weights, for the published code's form."""
    piece_weights: tuple[float, ...] = ()


@dataclass(frozen=True)
class Weigh(Request[WordWeights]):
    """Keyphrase weights of an answer's words, given its question ('' with `question=off`)."""

    question: str
    answer: str
    form: str = "paper"
    role: ClassVar[str] = "keyphrases"


@dataclass(frozen=True)
class Reading:
    """What the reader found."""

    answer: str
    """'' when the question is unanswerable on this text."""
    span: Span | None
    unanswerable: float
    """Probability that the text does not answer the question."""
    confidence: float
    """Probability of the answer span."""
    gold: float | None = None
    """Probability of the gold answer (all its places in a window together), when given and standing in the text."""
    best: str = ""
    """The most probable span, even where "no answer" is more probable."""
    overlap: float | None = None
    """Expected F1 of what the reader would answer with the gold answer, where that has a probability."""


@dataclass(frozen=True)
class Read(Request[Reading]):
    """Answer `question` from `text` alone; with `gold`, also how probable that answer is."""

    question: str
    text: str
    gold: str | None = None
    role: ClassVar[str] = "reader"


@dataclass(frozen=True)
class Ask(Request[tuple[str, ...]]):
    """Questions about `text` whose answer is `answer` (which starts at `start`), best first.

    Of a long text an asker reads the passage around the answer; `whole` gives it the text as it is, cut at its window.
    """

    text: str
    answer: str
    start: int
    beams: int = 1
    whole: bool = False
    role: ClassVar[str] = "asker"


@dataclass(frozen=True)
class Importance(Request[float]):
    """Probability that a question about a source is one a summary should answer."""

    source: str
    question: str
    answer: str
    role: ClassVar[str] = "weights"


@dataclass(frozen=True)
class Choice:
    """What a judge chose."""

    probabilities: dict[str, float]
    """Of each option; they sum to 1."""
    written: str
    """What it wrote, or would have written first."""
    measured: bool
    """Whether the probabilities are the model's own; False: 1 for the option it wrote, because the server gave none."""


@dataclass(frozen=True)
class Choose(Request[Choice]):
    """Which of a few options (numbers of a scale, A or B) a language model gives after a prompt."""

    prompt: str
    options: tuple[str, ...]
    role: ClassVar[str] = "judge"


# --- not a model -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Baseline(Request[float]):
    """The stored mean of a QRelScore part over unrelated pairs (`elench baselines`), for rescaling.

    No model answers it: the engine looks it up among the figures stored for the model that plays `about`.
    """

    about: str
    """The role whose model the figure belongs to: encoder or causal."""
    spec: str
    data: str
    """Name of the data set, or 'on' for the one stored last."""
    role: ClassVar[str] = ""
    cached: ClassVar[bool] = False

"""Surface signals: one-line observations about a text, cheap enough to be free, which profiles are made of."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from elench.errors import Unscored
from elench.metrics import Metric, Score, param, register
from elench.metrics.sanity import QUESTION, SOURCE, content, scorable
from elench.records.record import Record
from elench.text.ngrams import grams
from elench.text.wordlists import QUESTION_WORDS
from elench.text.words import words_plain

LONG = {"question": 20, "answer": 40, "summary": 80}
"""Words up to which a text is not called long."""
PRONOUNS = frozenset(
    ("he", "she", "it", "they", "him", "her", "them", "his", "hers", "its", "their", "theirs", "this", "that", "these",
     "those")
)  # fmt: skip
_NAME = re.compile(r"(?<=\S\s)[\"'“‘(]?([A-Z0-9][\w’'.-]*\w|[A-Z0-9])")
_SPOKEN_OF = re.compile(r"\b(passage|text|context|article|paragraph|mentioned|according)\b", re.IGNORECASE)
_NUMBER = re.compile(
    r"\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|hundred|thousand|million|"
    r"billion|dozen|half|no|none|many|few|several|all)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\d|\b(century|year|month|week|day|morning|evening|night|spring|summer|autumn|winter|before|after|during|until|"
    r"january|february|march|april|may|june|july|august|september|october|november|december|\w+day)\b",
    re.IGNORECASE,
)
Seen = tuple[float, Mapping[str, object]]


@register
@dataclass(frozen=True)
class Signal(Metric):
    """A cheap observation about the text: finished, brief, varied, grounded in its source, free of the answer.

    finished: 1 if a question has its question mark, another text its full stop. brevity: 1 - words beyond the limit /
    limit, which is 20 for a question, 40 for an answer, 80 for a summary. variety, phrases: share of content words, of
    word pairs, that are not repeated. grounded: share of content words found in the source. names: 1 / (1 + names and
    numbers not in the source). answer-free: share of the answer's content words that the question does not give away.
    answer-type: 1 if the answer looks like what the question word asks for. question-first: 1 if a question begins
    with its question word. standalone: 1 / (1 + pronouns and mentions of "the passage"). copied: the longest run of
    words taken from the source, as a share of the text; neither high nor low is good in itself.
    """

    name: ClassVar[str] = "signal"
    judges: ClassVar[tuple[str, ...]] = ("question", "answer", "summary")
    range: ClassVar[tuple[float, float]] = (-math.inf, 1.0)
    citation: ClassVar[str] = f"{SOURCE}: what a glance at the text tells"
    limits: ClassVar[str] = "Each sees one kind of fault and is 1, or nearly so, for most texts; English."
    example: ClassVar[Mapping[str, Any]] = QUESTION
    of: str = param(
        "finished",
        "which observation",
        (
            "finished", "brevity", "variety", "phrases", "grounded", "names", "answer-free", "answer-type",
            "question-first", "standalone", "copied",
        ),
    )  # fmt: skip
    judge: str = param(
        "", "which text is judged; default: the record's own field", ("", "question", "answer", "summary")
    )

    @property
    def reads(self) -> tuple[str, ...]:
        return {"grounded": ("context",), "names": ("context",), "copied": ("context",), "answer-free": ("answer",),
                "answer-type": ("answer",)}.get(self.of, ())  # fmt: skip

    async def score(self, record: Record) -> Score:
        judged = self.judged(record)
        text = self.candidate(record)
        scorable(text, judged)
        if self.of in ("answer-free", "answer-type", "question-first") and judged != "question":
            raise Unscored(f"signal[of={self.of}] is about questions, this record judges {judged}")
        for name in self.reads:
            self.text(record, name)
        value, evidence = SIGNALS[self.of](text, judged, record)
        return Score(value, evidence)


def _finished(text: str, judged: str, record: Record) -> Seen:
    ends = "?" in text if judged == "question" else text.rstrip(" \"'”’)]")[-1:] in (".", "!", "?")
    return float(ends), {"last": text.strip()[-20:]}


def _brevity(text: str, judged: str, record: Record) -> Seen:
    beyond = max(0, len(words_plain(text)) - LONG[judged])
    return 1 - beyond / LONG[judged], {"words_beyond": beyond}


def _variety(text: str, judged: str, record: Record) -> Seen:
    words = content(words_plain(text))
    repeated = sorted({word for word in words if words.count(word) > 1})
    return (len(set(words)) / len(words) if words else 1.0), {"repeated": repeated}


def _phrases(text: str, judged: str, record: Record) -> Seen:
    pairs = Counter(grams(words_plain(text), 2))
    repeated = [" ".join(map(str, pair)) for pair, count in pairs.items() if count > 1]
    return (len(pairs) / pairs.total() if pairs else 1.0), {"repeated": repeated}


def _grounded(text: str, judged: str, record: Record) -> Seen:
    source = set(words_plain(record.context or ""))
    words = [word for word in content(words_plain(text)) if word not in QUESTION_WORDS]
    new = [word for word in words if word not in source]
    return (1 - len(new) / len(words) if words else 1.0), {"not_in_source": new}


def _names(text: str, judged: str, record: Record) -> Seen:
    source = set(words_plain(record.context or ""))
    new = [name for name in _NAME.findall(text) if not set(words_plain(name)) <= source]
    return 1 / (1 + len(new)), {"not_in_source": new}


def _answer_free(text: str, judged: str, record: Record) -> Seen:
    answer = words_plain(record.answer or "")
    wanted = content(answer) or list(answer)
    given = [word for word in wanted if word in words_plain(text)]
    return (1 - len(given) / len(wanted) if wanted else 1.0), {"given_away": given}


def _answer_type(text: str, judged: str, record: Record) -> Seen:
    answer = record.answer or ""
    word = next((w for w in words_plain(text) if w in QUESTION_WORDS), "")
    looks = {
        "who": bool(re.search("[A-Z]", answer)),
        "when": bool(_TIME.search(answer)),
        "how": not re.search(r"(?i)\bhow (many|much|old|long|far)\b", text) or bool(_NUMBER.search(answer)),
    }
    return float(looks.get(word, True)), {"question_word": word, "answer": answer}


def _question_first(text: str, judged: str, record: Record) -> Seen:
    words = words_plain(text)[:3]
    return float(any(word in QUESTION_WORDS for word in words)), {"begins": " ".join(words)}


def _standalone(text: str, judged: str, record: Record) -> Seen:
    loose = [word for word in words_plain(text) if word in PRONOUNS] + _SPOKEN_OF.findall(text)
    return 1 / (1 + len(loose)), {"loose": loose}


def _copied(text: str, judged: str, record: Record) -> Seen:
    words, source = words_plain(text), words_plain(record.context or "")
    where: dict[str, list[int]] = {}
    for place, word in enumerate(source):
        where.setdefault(word, []).append(place)
    best, ending = 0, 0
    runs: dict[int, int] = {}
    for i, word in enumerate(words):  # runs[p]: length of the run that ends at source position p
        runs = {place: runs.get(place - 1, 0) + 1 for place in where.get(word, ())}
        longest = max(runs.values(), default=0)
        if longest > best:
            best, ending = longest, i + 1
    return best / len(words), {"run": " ".join(words[ending - best : ending])}


SIGNALS: Mapping[str, Callable[[str, str, Record], Seen]] = {
    "finished": _finished,
    "brevity": _brevity,
    "variety": _variety,
    "phrases": _phrases,
    "grounded": _grounded,
    "names": _names,
    "answer-free": _answer_free,
    "answer-type": _answer_type,
    "question-first": _question_first,
    "standalone": _standalone,
    "copied": _copied,
}

"""A question and its answer as one statement, by rule: "Who built it?" and "Agnes" make "Agnes built it."

Only questions whose words can stay as they are: nothing is inflected, so what comes out reads like English or is None.
"""

from __future__ import annotations

import re

BE = r"is|was|are|were"
HELP = rf"{BE}|did|does|do|has|have|had|can|could|will|would|should|must"
WHO = re.compile(rf"^(?:Who (?!(?:{HELP})\b)|What (?=\w+ed |made |led |won |caused |became ))(\w+ .+)$")
IDENTITY = re.compile(rf"^(?:Who|What|Where|When) ({BE}) ((?:the|a|an|his|her|its|their|this) .+|[A-Z].+)$")
PASSIVE = re.compile(
    r"^(?:When|Where|In (?:what|which) \w+|On (?:what|which) \w+|By whom) (was|were|is|are) (.+?) "
    r"(\w+ed|born|built|held|made|found|won|written|known|given|taken|sold|shown|seen|begun|set|put)\b(.*)$"
)
AMOUNT = re.compile(rf"^How (?:many|much) ([\w' -]+?) ((?:{BE}|have|has|had|can|will|would|live|lived|died|took) .+)$")
AUXILIARY = re.compile(
    r"^(?:When|Where|In (?:what|which) (?:year|month|city|country|state|century|decade)) "
    r"(did|will|can|could|would) ([A-Z][\w'-]+(?: [A-Z][\w'-]+)*|he|she|it|they) ([a-z]+.*)$"
)
DANGLING = re.compile(r"\b(?:with|of|for|on|in|by|to|from|at|as|called|named|than|about|into|do|have)$")
"""How questions end whose answer belongs into a gap that no rule here fills."""
PREPOSITION = re.compile(
    r"^(?:in|on|at|by|from|during|after|before|since|near|between|until|around|to) ", re.IGNORECASE
)


def statement(question: str, answer: str) -> str | None:
    """The answered question as a sentence; None where no rule fits."""
    asked, said = question.strip().rstrip("?").rstrip(), answer.strip().rstrip(".")
    if not asked or not said or len(said.split()) > 12 or DANGLING.search(asked):
        return None
    made = _made(asked, said)
    return None if made is None else f"{made[:1].upper()}{made[1:].rstrip()}."


def _made(asked: str, said: str) -> str | None:
    if found := PASSIVE.match(asked):
        verb, subject, participle, rest = found.groups()
        return f"{subject} {verb} {participle}{rest} {_placed(said, asked)}"
    if found := IDENTITY.match(asked):
        if asked.startswith(("Where", "When")) and not PREPOSITION.match(said):
            return f"{found[2]} {found[1]} {_placed(said, asked)}"
        return f"{found[2]} {found[1]} {said}"
    if found := AUXILIARY.match(asked):
        return f"{found[2]} {found[1]} {found[3]} {_placed(said, asked)}"
    if (found := AMOUNT.match(asked)) and not re.search(r"\b(?:do|does|did)\b", asked):
        return f"{said} {found[1]} {found[2]}" if found[1].split()[0] not in said else f"{said} {found[2]}"
    if found := WHO.match(asked):
        return f"{said} {found[1]}"
    return None


def _placed(said: str, asked: str) -> str:
    """The answer with the preposition that a place or time needs."""
    if PREPOSITION.match(said):
        return said[:1].lower() + said[1:]
    if asked.startswith("By whom"):
        return f"by {said}"
    return (
        f"on {said}"
        if re.match(r"^(?:\d{1,2} )?[A-Z][a-z]+ \d{1,2}\b", said) or asked.startswith("On ")
        else f"in {said}"
    )

"""Every list of English words that metrics leave out or weigh less.

| list | why it is separate |
|---|---|
| QUESTION_WORDS | what a question asks with |
| FUNCTION_WORDS | the sanity baselines' figures and Answerability's function words were measured with it |
| STOP_WORDS | the shipped keyphrase model was trained with it |
| QSTS_STOP_WORDS | the published QSTS program has it; `qsts[form=code]` must match that program |

Merging two of them would change published figures or the scores of a trained model.
"""

from __future__ import annotations

QUESTION_WORDS = frozenset(("what", "which", "why", "who", "whom", "whose", "where", "when", "how"))

FUNCTION_WORDS = frozenset(
    word
    for line in (
        "a an the this that these those some any each every either neither no all both few many much more most other",
        "another such same own several enough half i me my mine myself you your yours yourself yourselves he him his",
        "himself she her hers herself it its itself we us our ours ourselves they them their theirs themselves one",
        "ones someone somebody something anyone anybody anything everyone everybody everything nobody nothing none",
        "there here of in on at by for with about against between among into through during before after above below",
        "to from up down out off over under again further until till while since upon within without toward towards",
        "across along around behind beside besides beyond near onto per than as like via and or but nor so yet if",
        "because although though unless whether whereas then am is are was were be been being do does did doing done",
        "have has had having will would shall should can could may might must ought need dare not very too just only",
        "also even ever never once now rather quite almost already still perhaps 's 'm 're 've 'll 'd n't s t d m re",
        "ve ll don",
    )
    for word in line.split()
)
"""Words that carry grammar, not content."""

_STOPS = """
a an the this that these those and or but if because so than as while of at by for with about against between into
through during before after to from in out on off over under up down i me my mine we us our ours you your yours he him
his she her hers it its they them their theirs who whom whose which what when where why how is am are was were be been
being isn't aren't wasn't weren't do does did doing done don't doesn't didn't have has had having will would shall
should can could may might must there here then also just very too only such s t d ll re ve m it's he's she's they're
that's there's let's i'm you're we're etc
"""
STOP_WORDS = frozenset(_STOPS.split())
"""Words with little meaning of their own. Retrain the keyphrase model after a change."""

QSTS_STOP_WORDS = frozenset(
    """i me my myself we our ours ourselves you you're you've you'll you'd your yours yourself yourselves he him his
    himself she she's her hers herself it it's its itself they them their theirs themselves this that that'll these
    those what which who whom when where why how
    am is are was were be been being have has had having do does did doing can will just don don't should should've now
    a an the all any both each few more most other some such no nor not only own same so than too very
    and but if or because as until while of at by for with about against between into through during before after above
    below to from up down in out on off over under again further then once here there
    s t d ll m o re ve y ain aren aren't couldn couldn't didn didn't doesn doesn't hadn hadn't hasn hasn't haven haven't
    isn isn't ma mightn mightn't mustn mustn't needn needn't shan shan't shouldn shouldn't wasn wasn't weren weren't won
    won't wouldn wouldn't""".split()  # noqa: SIM905
)
"""Question words among them: the fixed list of the published QSTS program."""

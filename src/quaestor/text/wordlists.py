"""Closed classes of English words: function words and question words."""

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

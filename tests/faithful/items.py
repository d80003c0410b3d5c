"""The texts behind the golden values: plain cases, and those in which the forms differ."""

from __future__ import annotations

JACK = "Jack drove his car to the market to buy milk and honey for his large family."
BRIDGE = (
    "The old bridge over the river Neckar was closed on Monday after engineers found cracks in two pillars. "
    "Mayor Anna Weber said repairs would cost 3 million euros and take until October."
)
RARE = "Zugzwang xylophones quixotically jabberwocked; vexillology puzzled flummoxed kayakers. "
"""Words that every tokenizer here cuts into letters."""
QUESTIONS = {
    # name: (context, question, answer)
    "plain": (JACK, "Where did Jack buy his milk and honey?", "the market"),
    "yes": ("Anna wrote a great book in the old city.", "Did Anna write a book?", "yes"),
    "long answer": (BRIDGE, "Why was the bridge closed?", "after engineers found cracks in two pillars"),
    "above 512 pieces": (f"{BRIDGE} {RARE * 8}{JACK}", "What did Jack buy for his family?", "milk and honey"),
}
ANSWERS = {
    # name: (question, answer, reference)
    "figure 1": (
        "How many steps are involved in a hypothesis test?",
        "There are seven steps involved in a hypothesis test.",
        "Four steps are involved in a hypothesis test.",
    ),
    "short answer": ("Who wrote the book?", "Anna", "The book was written by Anna, the queen of the old city."),
    "repeated words": (
        "Where was the king born?",
        "in the city in the city by the river",
        "in the old city by a river",
    ),
    "yes and no": ("Was the bridge closed?", "no, it was not", "yes, it was closed on Monday"),
}
SUMMARIES = {
    # name: (source, summary)
    "bridge": (BRIDGE, "The bridge over the Neckar was closed on Monday because of cracks in two pillars."),
    "six sentences": (
        'Anna met Bert in Cairo. "Bert wrote a book!" said Anna... Did the king read it? The queen was in London. '
        "Two engineers drove to Paris. The mayor bought a large house in Rome.",
        "The mayor met Anna and Bert in Paris. They bought two books.",
    ),
}
QUESTION_PAIRS = (
    # reference, candidate
    ("What was the title of Bob Dylan's first album?", "What was Bob Dylan's first album called?"),
    ("What was the name of Vincent's brother?", "Who was Vincent's brother?"),
    ("Where in Germany was the composer Beethoven born?", "Which city in Germany is the place of birth of Beethoven?"),
    ("Who was Adams?", "Who was Adam?"),
    ("When did Freddie Mercury die?", "How did Freddie Mercury die?"),
    ("How does one become an angel investor?", "How do I get a job at Goldman Sachs?"),
    ("How do I get a job at Goldman Sachs?", "How does one become an angel investor?"),
    ("Who painted the house in 1999?", "Who sold the painting in May 1999?"),
)

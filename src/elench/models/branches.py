"""Writing many endings of few texts: a text is read once, its endings branch off and share what was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from elench.models.sharing import alike
from elench.models.tokens import Ints
from elench.requests import Floats

Best = tuple[Floats, Ints]
"""Log-probabilities and tokens of the likeliest next tokens of each row, best first."""


class Rows(Protocol):
    """The rows of a batch, one or more for each branch, with what the model remembers of them."""

    def begin(self, wishes: Sequence[Sequence[int]], owners: Sequence[int], best: int) -> Best:
        """Read the first tokens of each branch, after the text (by number) that it belongs to."""
        ...

    def step(self, parents: Sequence[int], tokens: Sequence[int], best: int) -> Best:
        """Go on from these rows of the step before (a row may go on twice) with one more token each."""
        ...


class Network(Protocol):
    """A language model that reads texts; `elench.models.llama_writer`."""

    def read(self, texts: Sequence[Sequence[int]]) -> Rows: ...


@dataclass
class Written:
    """The endings of one branch so far."""

    live: list[list[int]]
    done: list[tuple[float, list[int]]] = field(default_factory=list)

    def ranked(self, most: int) -> list[list[int]]:
        """Finished endings, the likeliest per token first."""
        return [ids for _, ids in sorted(self.done, key=lambda d: -d[0])[:most]]


@dataclass
class Beam:
    """What goes on: the rows of the step before, the token each adds, their log-probabilities, the living branches."""

    parents: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)
    alive: list[int] = field(default_factory=list)


class Branches:
    """Beam search (greedy with one beam) over all branches of all texts at once."""

    def __init__(self, network: Network, end: int) -> None:
        self.network, self.end = network, end

    def write(
        self, texts: Sequence[Sequence[int]], wishes: Sequence[Sequence[Sequence[int]]], beams: int, limit: int
    ) -> list[list[list[list[int]]]]:
        """For each text and each of its wishes (the tokens a branch begins with) up to `beams` endings, best first."""
        owners = [t for t, own in enumerate(wishes) for _ in own]
        written = [Written([[]]) for _ in owners]
        if owners:
            branches = [w for own in wishes for w in own]
            common = min(alike(branches[0], w[:-1]) for w in branches)  # what all begin with is read with the texts
            rows = self.network.read([[*text, *branches[0][:common]] for text in texts])
            best = rows.begin([w[common:] for w in branches], owners, 2 * beams)
            beam = Beam(totals=[0.0] * len(owners), alive=list(range(len(owners))))
            for length in range(1, limit + 1):
                beam = self._choose(written, beam, best, beams, length == limit)
                if not beam.alive:
                    break
                best = rows.step(beam.parents, beam.tokens, 2 * beams)
        found = iter(w.ranked(beams) for w in written)
        return [[next(found) for _ in own] for own in wishes]

    def _choose(self, written: list[Written], beam: Beam, best: Best, beams: int, last: bool) -> Beam:
        """Extend each living branch by its best tokens."""
        made = Beam()
        logs, which = best
        sums = (logs + np.asarray(beam.totals, dtype=np.float32)[:, None]).tolist()
        row = 0
        for number in beam.alive:
            branch = written[number]
            count = len(branch.live)
            options = [
                (score, i, int(token))
                for i in range(row, row + count)
                for score, token in zip(sums[i], which[i], strict=True)
            ]
            chosen = self._sift(branch, row, sorted(options, key=lambda option: -option[0])[: 2 * beams], beams)
            if last or len(branch.done) >= beams:
                if not branch.done:  # cut off by the limit: better an unfinished ending than none
                    cut = [(s, [*branch.live[parent - row], t]) for s, parent, t in chosen]
                    branch.done = [(s / len(ids), ids) for s, ids in cut]
            else:
                branch.live = [[*branch.live[parent - row], token] for _, parent, token in chosen]
                made.parents += [parent for _, parent, _ in chosen]
                made.tokens += [token for *_, token in chosen]
                made.totals += [score for score, *_ in chosen]
                made.alive.append(number)
            row += count
        return made

    def _sift(
        self, branch: Written, row: int, options: list[tuple[float, int, int]], beams: int
    ) -> list[tuple[float, int, int]]:
        """Those of the best options that go on; endings among the first `beams` are finished."""
        chosen: list[tuple[float, int, int]] = []
        for rank, (score, parent, token) in enumerate(options):
            if token != self.end:
                chosen += [(score, parent, token)] if len(chosen) < beams else []
            elif rank < beams:
                words = branch.live[parent - row]
                branch.done.append((score / (len(words) + 1), words))
        return chosen

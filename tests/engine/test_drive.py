"""The engine gathers, deduplicates, batches and hands back; one bad record costs only itself."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from elench.engine.drive import Driver, Failure
from elench.errors import MissingModel, Unscored
from elench.models.base import Model, ModelSet
from elench.models.packing import pack
from elench.requests import Request, together


@dataclass(frozen=True)
class Spell(Request[str]):
    text: str
    role: ClassVar[str] = "parser"


class Speller(Model):
    """A model for these tests: upper-cases; breaks on 'boom'; is not there for 'missing'."""

    role = "parser"
    name = "speller"
    sha256 = "0" * 64
    budget = 12

    def __init__(self):
        self.batches_seen = []

    def lengths(self, requests):
        return [len(r.text) for r in requests]

    def answer(self, batch):
        self.batches_seen.append([r.text for r in batch])
        if any(r.text == "boom" for r in batch):
            raise RuntimeError("boom")
        if any(r.text == "missing" for r in batch):
            raise MissingModel("get it with: elench models pull")
        return [r.text.upper() for r in batch]


@pytest.fixture
def driver():
    models = ModelSet()
    models.loaded["parser"] = Speller()
    return Driver(models)


async def twice(text):
    first = await Spell(text)
    second = await Spell(first + "!")
    return second


def test_requests_of_all_coroutines_share_batches_and_duplicates_are_asked_once(driver):
    assert driver.run([twice("ab"), twice("cd"), twice("ab")]) == ["AB!", "CD!", "AB!"]
    assert driver.models["parser"].batches_seen == [["ab", "cd"], ["AB!", "CD!"]]
    assert driver.asked == {"parser": 4}


def test_batches_keep_to_the_budget_and_to_like_lengths():
    assert pack([3, 9, 4, 1], 12) == [[1], [2, 0, 3]]
    assert pack([3, 9, 4, 1], 8) == [[1], [2, 0], [3]]
    assert pack([50], 12) == [[0]]
    assert pack([], 12) == []


def test_together_takes_requests_and_coroutines(driver):
    async def both():
        one, two, three = await together(Spell("a"), twice("b"), Spell("c"))
        return one + two + three

    assert driver.run([both()]) == ["AB!C"]
    assert driver.models["parser"].batches_seen[0] == ["a", "b", "c"]


def test_an_error_costs_only_its_own_record(driver):
    async def unscorable():
        raise Unscored("no question")

    good, bad, reason = driver.run([twice("ab"), twice("boom"), unscorable()])
    assert good == "AB!"
    assert isinstance(bad, Failure) and str(bad.error) == "boom"
    assert isinstance(reason, Failure) and isinstance(reason.error, Unscored)


def test_a_metric_may_catch_a_failed_request(driver):
    async def careful():
        try:
            return await Spell("boom")
        except RuntimeError:
            return "caught"

    assert driver.run([careful()]) == ["caught"]


def test_a_missing_model_stops_the_run(driver):
    with pytest.raises(MissingModel, match="models pull"):
        driver.run([twice("missing")])


def test_a_coroutine_that_asks_nothing_needs_no_model():
    async def plain():
        return 3

    assert Driver(ModelSet()).run([plain()]) == [3]


class Memory:
    """A cache for these tests, as the engine sees it."""

    def __init__(self):
        self.kept = {}

    def get_many(self, keys):
        return {key: self.kept[key] for key in keys if key in self.kept}

    def put_many(self, items):
        self.kept.update(items)


def test_cached_answers_are_not_asked_again(driver):
    driver.cache = Memory()
    assert driver.run([twice("ab"), twice("boom")])[0] == "AB!"
    seen = len(driver.models["parser"].batches_seen)
    assert driver.run([twice("ab")]) == ["AB!"]
    assert len(driver.models["parser"].batches_seen) == seen
    assert all(request.text != "boom" for _, request in driver.cache.kept)


def test_a_run_can_be_stopped_between_the_batches_of_one_round(driver):
    """A service drops the job of a client that hung up before its first score is finished."""
    seen = driver.models["parser"].batches_seen

    class Stop(Exception):
        pass

    def check():
        if len(seen) == 2:
            raise Stop

    with pytest.raises(Stop):
        driver.run([twice(letter * 12) for letter in "abcde"], check)
    assert seen == [["a" * 12], ["b" * 12]]

"""The profiles that come with elench."""

import pytest

from elench.evaluate.calibrate import believed, earlier_mixes
from elench.evaluate.calibrate_shipped import SHIPPED
from elench.metrics.profile import read_profile, read_shipped
from elench.show.profiles_page import profiles_page


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_profile_is_whole_and_says_where_it_comes_from(name):
    profile = read_profile(name)
    assert profile.judge == SHIPPED[name].judge
    assert read_shipped(profile.judge).sha256 == profile.sha256
    assert set(profile.content["elsewhere"]) == {*SHIPPED[name].files, *SHIPPED[name].others}
    for (dimension, variant), mix in profile.mixes.items():
        assert mix.parts, (dimension, variant)
        allowed = SHIPPED[name].chosen.get(dimension)
        assert allowed is None or {str(part.metric) for part in mix.parts} <= set(allowed)


def test_few_ratings_lean_on_what_each_file_taught():
    profile = read_profile("answers")
    specs = ["equivalent", "f1", "length"]
    belief = believed(specs, profile)
    taught = profile.content["taught"]
    assert belief.mixes.shape == (3, len(taught)) == (3, len(earlier_mixes(profile)))
    assert belief.mixes[1].tolist() == [one["weights"].get("f1", 0.0) for one in taught]
    assert (belief.mixes[:2] >= 0).all()  # higher is better: no weight says otherwise
    assert not belief.single


def test_the_results_page_holds_the_figures_of_the_profiles():
    contents = {name: read_profile(name).content for name in SHIPPED}
    page = profiles_page(contents)
    found = contents["answers"]["elsewhere"]["kpqa_semeval"][0]
    assert f"| kpqa_semeval | correctness | {found['n']} | {found['r']:.3f}".replace(" 0.", " .") in page
    ratings = contents["summaries"]["first_file"]["r"]
    mean = sum(value for name, value in ratings.items() if name != "overall") / 4
    assert f"| mean of 4 | {mean:.3f}".replace(" 0.", " .") in page

"""The asker writes for many answers at once what the model would write for each alone."""

from __future__ import annotations

import pytest

from quaestor.models.passages import passage_of, passages, sentences

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def tiny():
    """A random Llama with grouped heads, small vocabulary, so that endings come soon."""
    torch.manual_seed(3)
    config = transformers.LlamaConfig(
        vocab_size=24,
        hidden_size=48,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=8,
        initializer_range=0.5,
        eos_token_id=0,
        pad_token_id=0,
        bos_token_id=1,
    )
    return transformers.LlamaForCausalLM(config).eval()


TEXTS = [[5, 6, 7, 8, 9, 10, 11], [3, 4, 5], [12, 13, 14, 15, 16, 17, 18, 19, 20, 21]]
WISHES = [[[2, 3], [4, 5, 6, 7], [8]], [[9, 9, 2]], [[1, 2, 3, 4, 5], [7, 7]]]


@pytest.mark.parametrize("beams", [1, 3])
def test_branches_equal_transformers_generate_one_at_a_time(tiny, beams):
    from quaestor.models.branches import Branches

    written = Branches(tiny, end=0).write(TEXTS, WISHES, beams, limit=200)
    for text, wishes, endings in zip(TEXTS, WISHES, written, strict=True):
        for wish, found in zip(wishes, endings, strict=True):
            prompt = torch.tensor([text + wish])
            alone = tiny.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=200,
                num_beams=beams,
                do_sample=False,
                early_stopping=beams > 1 or None,
            )[0, prompt.shape[1] :].tolist()
            assert found[0] == [t for t in alone if t != 0]
            assert len(found) <= beams and len({tuple(f) for f in found}) == len(found)


def test_batch_does_not_change_what_is_written(tiny):
    from quaestor.models.branches import Branches

    branches = Branches(tiny, end=0)
    together = branches.write(TEXTS, WISHES, 2, 30)
    assert together == [branches.write([t], [w], 2, 30)[0] for t, w in zip(TEXTS, WISHES, strict=True)]


def test_passages_are_whole_sentences_of_bounded_length():
    text = " ".join(f"Sentence number {i} has exactly eight words here." for i in range(40))
    spans = passages(text, 50)
    assert all(len(text[a:b].split()) <= 50 and text[a:b].endswith("here.") for a, b in spans)
    assert " ".join(text[a:b] for a, b in spans) == text
    at = text.index("number 30")
    assert "number 30 " in passage_of(text, at, spans)


def test_one_endless_sentence_is_cut_and_an_empty_text_has_no_passage():
    text = "word " * 400
    assert all(len(text[a:b].split()) <= 120 for a, b in passages(text))
    assert passages("") == [] and passages(" \n ") == [] and sentences("\n\n") == []
    assert passage_of("", 0, []) == ""

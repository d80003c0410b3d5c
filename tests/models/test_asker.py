"""The asker writes for many answers at once what the model would write for each alone."""

from __future__ import annotations

import pytest

from elench.text.passages import passage_of, passages, sentences

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


def writer(model, dtype="float32"):
    """The tiny model as ONNX Runtime runs it, in a graph of its own shape."""
    pytest.importorskip("onnx")
    from elench.models.branches import Branches
    from elench.models.llama_writer import LlamaWriter
    from elench.train.llama_graphs import LlamaShape, llama_writer

    config = model.config
    shape = LlamaShape(
        config.num_hidden_layers, config.hidden_size, config.num_attention_heads, config.num_key_value_heads,
        config.intermediate_size, config.vocab_size, config.rms_norm_eps,
    )  # fmt: skip
    weights = {name: p.detach().numpy() for name, p in model.named_parameters()}
    name = "smollm-write-int8" if dtype == "int8" else "smollm-write"
    graphs = {name: llama_writer(shape, dtype == "int8").SerializeToString()}
    return Branches(LlamaWriter(weights, 10000.0, size=config.head_dim, graphs=graphs, dtype=dtype), end=0)


@pytest.mark.parametrize("beams", [1, 3])
def test_branches_equal_transformers_generate_one_at_a_time(tiny, beams):
    from elench.models.torch_networks import Generator

    ours, theirs = (w.write(TEXTS, WISHES, beams, limit=200) for w in (writer(tiny), Generator(tiny, end=0)))
    for mine, alone in zip(ours, theirs, strict=True):
        for found, expected in zip(mine, alone, strict=True):
            assert found[0] == expected[0]
            assert len(found) <= beams and len({tuple(f) for f in found}) == len(found)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_batch_does_not_change_what_is_written(tiny, dtype):
    branches = writer(tiny, dtype)
    together = branches.write(TEXTS, WISHES, 2, 30)
    assert together == [branches.write([t], [w], 2, 30)[0] for t, w in zip(TEXTS, WISHES, strict=True)]


def test_in_int8_next_tokens_are_nearly_as_probable_as_in_torch(tiny):
    text, wish = TEXTS[0], WISHES[0][1]
    logs, tokens = writer(tiny, "int8").network.read([text]).begin([wish], [0], tiny.config.vocab_size)
    with torch.inference_mode():
        exact = torch.log_softmax(tiny(torch.tensor([[*text, *wish]])).logits[0, -1], -1).numpy()
    apart = abs(logs[0] - exact[tokens[0]])
    assert 1e-6 < apart.mean() < 0.1 * exact.std(), "rounded to 8 bits, and not more than that"


def test_rows_of_unequal_length_are_read_in_two_passes_and_written_as_alone(tiny):
    wishes = [[[1, 2, *[3] * (i % 3), 4, *[5] * (30 * (i % 10 == 0))] for i in range(20)]] * 2
    texts = [[5, 6, 7, 8, 9] * 12, [3, 4, 5]]
    branches = writer(tiny)
    passes = []
    branches.network.session().run_held = count_passes(branches.network.session().run_held, passes)
    together = branches.write(texts, wishes, 1, 10)
    assert passes[:4] == [(1, 57), (2, 5), (4, 29), (40, 3)]  # "1 2" belongs to the texts
    for text, own, found in zip(texts, wishes, together, strict=True):
        assert found == [branches.write([text], [[w]], 1, 10)[0][0] for w in own]


def count_passes(run, passes):
    """Remembers the rows and tokens of each pass."""

    def counted(given, outputs):
        passes.append(tuple(given["positions"].shape()))
        return run(given, outputs)

    return counted


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


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    """A random T5 with a word tokenizer, saved as a folder, as a user would name one."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = ["<pad>", "</s>", "<unk>", "sv1", "true", *(f"w{i}" for i in range(40)), "?", "."]
    inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    torch.manual_seed(5)
    config = transformers.T5Config(
        vocab_size=len(words), d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0,
        eos_token_id=1, pad_token_id=0, initializer_factor=3.0,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("t5")
    transformers.T5ForConditionalGeneration(config).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_text_to_text_asker_takes_the_role_by_folder(t5):
    from elench.models.base import ModelChoice, load_model
    from elench.requests import Ask

    asker = load_model(ModelChoice("asker", str(t5)))
    batch = [Ask("w1 w2 w3 .", "w2", 3), Ask("w7 w8 w9 w10 w11 w12 .", "w9", 6), Ask("w1 w2 w3 .", "w2", 3, beams=3)]
    assert asker.source(batch[0]) == "sv1 </s> w2 </s> w1 w2 w3 ."
    found = asker.answer(batch)
    for request, questions in zip(batch, found, strict=True):
        inputs = asker.tokenizer([asker.source(request)], return_tensors="pt")
        alone = asker.model.generate(
            input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], max_new_tokens=20,
            num_beams=request.beams, do_sample=False,
        )  # fmt: skip
        assert (questions[0] if questions else "") == asker.tokenizer.decode(alone[0], skip_special_tokens=True).strip()
        assert len(questions) <= request.beams


def test_a_text_to_text_asker_reads_the_passage_around_the_answer_of_a_long_text(t5):
    from elench.models.base import ModelChoice, load_model
    from elench.requests import Ask

    text = "w1 w2 . " * 400 + "W3 is w4 ."
    source = load_model(ModelChoice("asker", str(t5))).source(Ask(text, "w4", text.index("w4")))
    assert source.endswith("W3 is w4 .") and len(source.split()) < 400


def test_a_text_to_text_weighter_says_how_probable_true_is(t5):
    from elench.models.base import ModelChoice, load_model
    from elench.requests import Importance

    weighter = load_model(ModelChoice("weights", str(t5)))
    long, short = Importance("w1 w2 w3 . w5 w6", "w7 ?", "w2"), Importance("w1", "w9 ?", "w1")
    together = weighter.answer([long, short])
    assert together == pytest.approx([weighter.answer([r])[0] for r in (long, short)], abs=1e-5)
    assert all(0 < p < 1 for p in together)


def test_cloze_question_words_go_by_the_answers_head_and_case() -> None:
    from elench.text.cloze import question_word

    asked = {
        "when": ("last year", "March 20 , 2015", "Tuesday night", "late 1970s"),
        "what": ("44 - year - old", "two-year deal", "season-long loan spell", "6-1", ""),
        "how many": ("more than 200 people", "Seven people"),
        "how much": ("£23million", "20 per cent"),
        "who": ("League One", "Interstate 30"),
    }
    assert {a: question_word(a, "the ") for answers in asked.values() for a in answers} == {
        a: word for word, answers in asked.items() for a in answers
    }


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        ("Anna Weber", "Who moved from Ulm to the coast in 1987?"),
        ("Ulm", "Anna Weber moved from what place to the coast in 1987?"),
        ("1987", "Anna Weber moved from Ulm to the coast in what year?"),
        ("two dogs", "Her how many barked on Monday?"),
        ("Monday", "Her two dogs barked on when?"),
    ],
)
def test_cloze_questions_put_a_question_word_in_the_answers_place(answer, question):
    from elench.models.base import ModelChoice, load_model
    from elench.requests import Ask

    text = "Anna Weber moved from Ulm to the coast in 1987. Her two dogs barked on Monday."
    asker = load_model(ModelChoice("asker", "cloze"))
    assert asker.answer([Ask(text, answer, text.index(answer))]) == [(question,)]


TEXT = (
    "Anna Weber moved from Ulm to the coast in 1987. She opened a small bakery near the harbour, where she sold rye "
    "bread and plum cake. In 1994 the town council gave her a medal for feeding three hundred people after a flood. Her "
    "brother Karl, an engineer, built the ovens from old ship boilers. The bakery closed in 2011, and the building is "
    "now a museum of fishing nets that opens on Sundays."
)
ANSWERS = (
    "Anna Weber", "Ulm", "1987", "a small bakery", "the harbour", "rye bread and plum cake", "1994", "the town council",
    "a medal", "three hundred people", "a flood", "Karl", "an engineer", "the ovens", "old ship boilers", "2011",
    "The bakery", "a museum of fishing nets", "Sundays", "the coast",
)  # fmt: skip


@pytest.mark.embedded
def test_the_shipped_asker_asks_for_its_answer_and_writes_what_transformers_writes():
    """20 questions in ONNX Runtime, side by side, and one by one with transformers' generate on the merged weights."""
    from dataclasses import replace

    from elench.models.base import ModelChoice, load, resolve
    from elench.requests import Ask

    exact, small = (resolve(ModelChoice("asker", "trained", dtype=dtype)) for dtype in ("float32", "int8"))
    assert [(i.runtime, i.dtype) for i in (exact, small)] == [("onnx", "float32"), ("onnx", "int8")]
    asked = [Ask(TEXT, answer, TEXT.index(answer)) for answer in ANSWERS]
    found, rounded = (load(identity).answer(asked) for identity in (exact, small))
    for questions in (found, rounded):
        assert "year" in questions[2][0] or questions[2][0].startswith("When")
        assert questions[0][0].endswith("?") and "Anna" not in questions[0][0]
    assert found == load(replace(exact, runtime="torch")).answer(asked)
    assert found != rounded

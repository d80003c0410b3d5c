"""Models behind a URL: against a server that fails in many ways, and against a real one (llama.cpp with SmolLM2)."""

import json
import math
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

import elench
from elench.cli import cli
from elench.errors import UsageError
from elench.models.base import ModelSet
from elench.models.http import choose
from elench.models.http_client import BudgetSpent, Client, Limits
from tests.models.gguf_files import smollm_gguf

QUESTION = {
    "id": "q", "context": "The Rhine rises in the Swiss Alps.", "question": "Where does the Rhine rise?",
    "answer": "the Swiss Alps", "judge": "question",
}  # fmt: skip


def chat(content, logprobs=None):
    choice = {"index": 0, "message": {"role": "assistant", "content": content}}
    if logprobs:
        choice["logprobs"] = {"content": logprobs}
    return {"choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 2}}


def token(text, logprob, **top):
    return {"token": text, "logprob": logprob, "top_logprobs": [{"token": t, "logprob": v} for t, v in top.items()]}


class Server:
    """A server whose next answers are given by the test: (status, body, headers), or a function of the handler."""

    def __init__(self):
        self.script, self.default, self.seen, self.active, self.most = [], (200, chat("4")), [], 0, 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.reply((200, {"data": [{"id": "tiny"}]}))

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.seen.append((time.monotonic(), self.path, dict(self.headers), body))
                outer.active += 1
                outer.most = max(outer.most, outer.active)
                try:
                    answer = outer.script.pop(0) if outer.script else outer.default
                    self.reply(answer(self, body) if callable(answer) else answer)
                finally:
                    outer.active -= 1

            def reply(self, answer):
                if answer is None:
                    return
                status, body, *headers = answer
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in (headers[0] if headers else {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv("ELENCH_API_KEY", raising=False)
    monkeypatch.setattr("elench.models.http_client.random.uniform", lambda a, b: 0.01)  # back off, but not for long
    made = Server()
    yield made
    made.http.shutdown()
    made.http.server_close()


def judged(server, records=(QUESTION,), spec="judge", cache=False):
    return elench.score(list(records), [spec], models=ModelSet({"judge": server.url}), cache=cache)


def test_the_rating_is_the_expected_value_over_the_scale(server):
    server.default = (
        200,
        chat("4", [token("4", math.log(0.5), **{"4": math.log(0.5), "5": math.log(0.25), "x": -1.0})]),
    )
    result = judged(server)
    assert result["judge", "q"] == pytest.approx((4 * 0.5 + 5 * 0.25) / 0.75)
    body = server.seen[0][3]
    assert (
        body["temperature"] == 0 and body["model"] == "tiny" and "Where does the Rhine rise?" in str(body["messages"])
    )


def test_without_token_probabilities_the_written_number_counts(server):
    server.default = (200, chat("I would say 3."))
    result = judged(server)
    assert result["judge", "q"] == 3.0
    assert result.outcomes[0].scores["judge"].evidence["measured"] is False


def test_a_model_that_talks_around_it_is_read_at_its_first_token():
    said = token("The", -0.2, The=-0.2, **{"1": math.log(0.03), "4": math.log(0.06)})
    assert choose("The text is good", [said], ("1", "4")).probabilities == pytest.approx({"1": 1 / 3, "4": 2 / 3})


def drop(handler, body):
    handler.connection.close()


def half(handler, body):
    handler.send_response(200)
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.connection.close()


TRANSIENT = {
    "overloaded": (503, {"error": "busy"}),
    "too many requests": (429, {"error": "slow down"}, {"Retry-After": "0"}),
    "internal error": (500, b"<html>oops</html>"),
    "connection dropped": drop,
    "answer cut off": half,
    "not JSON": (200, b"<html>welcome to the login page</html>"),
    "a list": (200, [1, 2, 3]),
    "nested too deeply": (200, b"[" * 100_000),
    "a date in the past": (429, {"error": "slow down"}, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
    "a date that is none": (429, {"error": "slow down"}, {"Retry-After": "soon"}),
}


@pytest.mark.parametrize("failure", TRANSIENT.values(), ids=TRANSIENT)
def test_what_may_pass_is_tried_again(server, failure):
    server.script = [failure, failure]
    assert judged(server)["judge", "q"] == 4.0
    assert len(server.seen) == 3


NONSENSE = {
    "no choices": ((200, {"object": "error"}), "no choices"),
    "empty choices": ((200, {"choices": []}), "no choices"),
    "empty text": ((200, chat("  ")), "wrote nothing"),
    "null text": ((200, chat(None)), "wrote nothing"),
    "no number": ((200, chat("Great question!")), "none of the options"),
    "two numbers": ((200, chat("2 or 4")), "several of the options"),
    "a year": ((200, chat("1902", [token("1", -0.1, **{"1": -0.1}), token("902", -0.1)])), "none of the options"),
    "choices of another shape": ((200, {"choices": [{"text": 7}]}), "cannot be read"),
    "text refused": ((400, {"error": "context too long"}), "refused the request: status 400"),
}


@pytest.mark.parametrize(("failure", "said"), NONSENSE.values(), ids=NONSENSE)
def test_nonsense_leaves_the_record_unscored_with_the_reason(server, failure, said):
    server.default = failure
    assert said in judged(server).unscored["judge"]["q"]


def test_probabilities_that_are_no_numbers_are_not_used():
    broken = {"token": "4", "logprob": float("nan"), "top_logprobs": [{"token": "4", "logprob": "high"}]}
    found = choose("4", [broken], ("1", "4"))
    assert found.probabilities == {"1": 0.0, "4": 1.0} and not found.measured


def test_a_server_that_never_recovers_leaves_records_unscored(server, monkeypatch):
    monkeypatch.setenv("ELENCH_HTTP_RETRIES", "2")
    server.default = (503, {"error": "busy"})
    assert "failed 3 times: status 503" in judged(server).unscored["judge"]["q"]


def test_an_answer_that_is_cut_off_says_so(server, monkeypatch):
    monkeypatch.setenv("ELENCH_HTTP_RETRIES", "0")
    server.default = half
    assert "closed after 13 of 5000 bytes" in judged(server).unscored["judge"]["q"]


def test_a_silent_server_times_out(server, monkeypatch):
    monkeypatch.setenv("ELENCH_HTTP_RETRIES", "0")
    monkeypatch.setenv("ELENCH_HTTP_TIMEOUT", "0.2")
    server.default = lambda handler, body: time.sleep(0.6)
    assert "no answer in 0.2 s" in judged(server).unscored["judge"]["q"]


def test_refused_keys_unknown_models_and_redirects_stop_the_run(server, monkeypatch):
    monkeypatch.setenv("ELENCH_API_KEY", "sk-secret")
    for status, said in ((401, "ELENCH_API_KEY is refused"), (404, "check address and model name")):
        server.default = (status, {"error": "sk-secret is wrong"})
        with pytest.raises(UsageError, match=said) as caught:
            judged(server)
        assert "sk-secret" not in str(caught.value)
    other = Server()
    server.default = (307, b"", {"Location": f"{other.url}/chat/completions"})
    with pytest.raises(UsageError, match="status 307"):
        judged(server)
    assert not other.seen
    other.http.shutdown()


def test_the_key_goes_to_the_header_and_nowhere_else(server, monkeypatch, tmp_path):
    monkeypatch.setenv("ELENCH_API_KEY", "sk-secret")
    records = tmp_path / "in.jsonl"
    records.write_text(json.dumps(QUESTION) + "\n")
    out = tmp_path / "out.jsonl"
    arguments = ["score", str(records), "-m", "judge", "--model", f"judge={server.url}", "-o", str(out), "--explain"]
    result = CliRunner().invoke(cli, [*arguments, "--no-cache"], catch_exceptions=False)
    assert result.exit_code == 0
    assert server.seen[0][2]["Authorization"] == "Bearer sk-secret"
    for path in tmp_path.iterdir():
        assert b"sk-secret" not in path.read_bytes()
    assert "sk-secret" not in result.output
    with pytest.raises(UsageError, match="not sent over plain http"):
        Client("http://example.org/v1")


def test_requests_are_concurrent_and_answers_keep_their_order(server):
    def slow(handler, body):
        time.sleep(0.05)
        number = body["messages"][0]["content"].split("#")[1][0]
        return 200, chat(number)

    server.default = slow
    records = [{**QUESTION, "id": f"q{k}", "question": f"Where does it rise #{1 + k % 5}?"} for k in range(16)]
    result = judged(server, records)
    assert [result["judge", f"q{k}"] for k in range(16)] == [1 + k % 5 for k in range(16)]
    assert server.most > 1


def test_a_rate_limit_spaces_the_requests(server):
    client = Client(server.url, Limits(per_minute=1200, concurrency=4))
    client.post_all("/chat/completions", [{}] * 5)
    times = sorted(t for t, *_ in server.seen)
    assert times[-1] - times[0] >= 0.18  # four gaps of 50 ms


def test_budgets_stop_the_run_and_answers_are_kept(server, monkeypatch, tmp_path):
    monkeypatch.setenv("ELENCH_CACHE", str(tmp_path))
    records = [{**QUESTION, "id": f"q{k}", "question": f"Where does river {k} rise?"} for k in range(6)]
    monkeypatch.setenv("ELENCH_HTTP_MAX_REQUESTS", "4")
    with pytest.raises(BudgetSpent, match="--max-requests 4 is used up"):
        judged(server, records, cache=True)
    monkeypatch.delenv("ELENCH_HTTP_MAX_REQUESTS")
    judged(server, records, cache=True)
    assert len(server.seen) == 6  # the four answers were not asked again
    client = Client(server.url, Limits(max_cost=0.001, price_in=5.0, price_out=0.0))  # 100 tokens: 0.0005
    client.post("/chat/completions", {})
    client.post("/chat/completions", {})
    with pytest.raises(BudgetSpent, match="2 requests"):
        client.post("/chat/completions", {})


def test_reader_asker_and_support_speak_through_the_chat(server):
    from elench.engine.drive import Driver
    from elench.requests import Ask, Classify, Read

    def answer(handler, body):
        prompt = body["messages"][0]["content"]
        if "Claim:" in prompt:
            return 200, chat(
                "missing", [token("missing", math.log(0.8), missing=math.log(0.8), supported=math.log(0.2))]
            )
        return 200, chat("Where does the Rhine rise?" if "Write one question" in prompt else "the Swiss Alps.")

    server.default = answer
    models = ModelSet(dict.fromkeys(("reader", "asker", "support"), server.url))
    text = QUESTION["context"]
    read, asked, support = Driver(models).answer(
        [
            Read("Where?", text, gold="Swiss Alps"),
            Ask(text, "the Swiss Alps", 19),
            Classify("support", "It rains.", text),
        ]
    )
    assert read.answer == "the Swiss Alps" and text[slice(*read.span)] == "the Swiss Alps"
    assert read.overlap == pytest.approx(1.0) and read.gold == 1.0  # articles do not count
    assert asked == ("Where does the Rhine rise?",)
    assert support == pytest.approx({"supported": 0.2, "contradicted": 0.0, "not found": 0.8})


def test_a_server_with_echo_scores_the_prompt_and_one_without_says_so(server):
    from elench.engine.drive import Driver
    from elench.requests import Continue, Failure

    echoed = {"tokens": ["Hello", " there", "!"], "token_logprobs": [None, -1.5, -0.5], "text_offset": [0, 5, 11]}
    server.default = (200, {"choices": [{"text": "Hello there!", "logprobs": echoed}]})
    driver = Driver(ModelSet({"causal": server.url}))
    (scores,) = driver.answer([Continue("Hello", " there")])
    assert scores.logprobs == (-1.5,) and scores.pieces == (" there",)
    server.default = (200, {"choices": [{"text": "!", "logprobs": None}]})
    (failure,) = driver.answer([Continue("Hello", " you")])
    assert isinstance(failure, Failure) and "no log-probabilities of the prompt" in str(failure.error)


def test_wrong_addresses_are_refused_in_one_line(server):
    for name, said in (
        ("http://127.0.0.1:9/v1#m", "cannot reach the server"),
        ("http://user:key@127.0.0.1/v1#m", "put the key into ELENCH_API_KEY"),
    ):
        with pytest.raises(UsageError, match=said):
            ModelSet({"judge": name}).identity("judge")
    with pytest.raises(UsageError, match="not as encoder"):
        ModelSet({"encoder": server.url}).identity("encoder")


def test_the_identity_follows_the_model_and_the_prompt(server, monkeypatch):
    first = ModelSet({"reader": f"{server.url}#a"}).identity("reader")
    assert first.key != ModelSet({"reader": f"{server.url}#b"}).identity("reader").key
    monkeypatch.setitem(__import__("elench.models.http", fromlist=["PROMPTS"]).PROMPTS, "reader", "another {text}")
    assert first.key != ModelSet({"reader": f"{server.url}#a"}).identity("reader").key
    assert str(first).startswith("reader=a@") and str(first).endswith("/http/server")


@pytest.mark.embedded
def test_a_real_server_plays_judge_reader_and_support(tmp_path):
    """llama.cpp (xllamacpp) serves the GGUF of the embedded SmolLM2 on loopback."""
    xllamacpp = pytest.importorskip("xllamacpp")
    settings = xllamacpp.CommonParams()
    settings.model.path, settings.n_ctx, settings.port, settings.warmup = str(smollm_gguf()), 2048, 0, False
    settings.cpuparams.n_threads = 1
    real = xllamacpp.Server(settings)
    url = f"{real.listening_address}/v1"
    sample = Path(__file__).parents[2] / "sample/records.jsonl"
    records = [json.loads(line) for line in sample.read_text().splitlines()[:2]]
    result = elench.score(records, "judge,roundtrip", models=ModelSet({"judge": url, "reader": url}), cache=False)
    for outcome in result.outcomes:  # a model of this size does not always give a number; then it says so
        rated = outcome.scores.get("judge")
        assert (1 <= rated.value <= 5) if rated else "none of the options" in outcome.unscored["judge"]
        assert "roundtrip" in outcome.scores
    assert any("judge" in o.scores and o.scores["judge"].evidence["measured"] for o in result.outcomes)
    assert "judge=SmolLM2-135M-Instruct.Q4_1.gguf@" in result.signatures["judge"]
    unscored = elench.score([QUESTION], "likelihood", models=ModelSet({"causal": url}), cache=False).unscored
    assert "no log-probabilities of the prompt" in unscored["likelihood"]["q"]  # llama.cpp has no echo

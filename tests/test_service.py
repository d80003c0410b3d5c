"""The HTTP service: numbers, limits, and no way to make it fail with a 5xx."""

import pytest

import quaestor

testclient = pytest.importorskip("fastapi.testclient")
ROW = {"id": "1", "judge": "answer", "answer": "a dog", "references": ["a dog barked"]}


@pytest.fixture(scope="module")
def client():
    from quaestor.service import make_app

    with testclient.TestClient(make_app(max_bytes=50_000), raise_server_exceptions=False) as found:
        yield found


def test_scores_and_evidence(client):
    found = client.post("/score", json={"records": [ROW], "metrics": ["f1", "bleu[n=1]"], "explain": True}).json()
    assert found["results"][0]["scores"]["f1"] == pytest.approx(quaestor.score([ROW], "f1")["f1", "1"])
    assert found["results"][0]["evidence"]["f1"] and found["summary"]["f1"]["n"] == 1 and found["signatures"]["f1"]
    assert client.get("/health").json() == {"status": "ok"} and "bleu" in client.get("/metrics").json()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"records": [ROW], "metrics": ["blue"]}, 400),
        ({"records": [{"id": "1", "references": "x"}], "metrics": ["f1"]}, 400),
        ({"records": [ROW, ROW], "metrics": ["f1"]}, 400),
        ({"records": [], "metrics": ["f1"]}, 422),
        ({"records": [ROW]}, 422),
        ({"records": [ROW], "metrics": ["f1"], "more": 1}, 422),
        ({"records": [ROW | {"answer": "x" * 60_000}], "metrics": ["f1"]}, 413),
    ],
)
def test_bad_bodies_are_told(client, body, code):
    answer = client.post("/score", json=body)
    assert answer.status_code == code and answer.json()


def test_a_slow_job_is_cut_off():
    from quaestor.service import make_app

    with testclient.TestClient(make_app(max_seconds=1e-6)) as client:
        answer = client.post("/score", json={"records": [ROW], "metrics": ["f1"]})
        assert answer.status_code == 503 and "fewer records" in answer.json()["error"]


def test_no_body_of_the_openapi_document_gives_a_5xx():
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, given, settings

    from quaestor.service import make_app

    schema = schemathesis.openapi.from_asgi("/openapi.json", make_app(max_bytes=50_000))

    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
        def attack(case):
            answer = case.call()
            assert answer.status_code < 500, (answer.status_code, answer.text)

        given(case=operation.as_strategy())(attack)()


@pytest.mark.parametrize(
    "body",
    [
        '{"records":[{"id":"\\ud800","answer":"a","references":["a"]}],"metrics":["f1"]}',
        '{"records":[{"id":"1","answer":"a","references":["a"],"human":{"h":1' + "0" * 400 + '}}],"metrics":["f1"]}',
        '{"records":[{"id":"1","answer":"a"}],"metrics":["f1"],"explain":NaN}',
        '{"records":[{"id":"1","answer":"a"}],"metrics":[Infinity]}',
        '{"records":[{"id":"1","answer":"a"}],"metrics":["f1"],"\\ud800":1}',
    ],
)
def test_odd_bodies_are_refused_in_one_line(client, body):
    answer = client.post("/score", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422) and answer.json()["error"]


def test_the_documentation_loads_nothing_from_elsewhere(client):
    page = client.get("/docs").text
    assert "POST /score" in page and "http://HOST" in page and "https://" not in page

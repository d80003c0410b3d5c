"""The HTTP service: numbers, limits, and no way to make it fail with a 5xx."""

import pytest

import elench

testclient = pytest.importorskip("fastapi.testclient")
ROW = {"id": "1", "judge": "answer", "answer": "a dog", "references": ["a dog barked"]}


@pytest.fixture(scope="module")
def client():
    from elench.adapters.service import make_app

    with testclient.TestClient(make_app(max_bytes=50_000), raise_server_exceptions=False) as found:
        yield found


def test_scores_and_evidence(client):
    found = client.post("/score", json={"records": [ROW], "metrics": ["f1", "bleu[n=1]"], "explain": True}).json()
    assert found["results"][0]["scores"]["f1"] == pytest.approx(elench.score([ROW], "f1")["f1", "1"])
    assert found["results"][0]["evidence"]["f1"] and found["summary"]["f1"]["n"] == 1 and found["signatures"]["f1"]
    assert client.get("/health").json() == {"status": "ok"} and "bleu" in client.get("/metrics").json()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"records": [ROW], "metrics": ["blue"]}, 400),
        ({"records": [{"id": "1", "references": {"a": 3}}], "metrics": ["f1"]}, 400),
        ({"records": [], "metrics": ["f1"]}, 422),
        ({"records": [ROW]}, 422),
        ({"records": [ROW], "metrics": ["f1"], "more": 1}, 422),
        ({"records": [ROW | {"answer": "x" * 60_000}], "metrics": ["f1"]}, 413),
    ],
)
def test_bad_bodies_are_told(client, body, code):
    answer = client.post("/score", json=body)
    assert answer.status_code == code and answer.json()


def test_a_row_that_is_not_a_record_is_rejected_and_the_others_are_scored(client):
    found = client.post("/score", json={"records": [ROW, ROW], "metrics": ["f1"]}).json()
    assert [line["rejected"] for line in found["results"]] == [None, "duplicate id '1': already record 0"]
    assert found["results"][0]["scores"]["f1"] is not None and found["summary"]["f1"]["n"] == 1


def test_a_slow_job_is_cut_off():
    from elench.adapters.service import make_app

    with testclient.TestClient(make_app(max_seconds=1e-6)) as client:
        answer = client.post("/score", json={"records": [ROW], "metrics": ["f1"]})
        assert answer.status_code == 503 and "fewer records" in answer.json()["error"]


def test_no_body_of_the_openapi_document_gives_a_5xx():
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, given, settings

    from elench.adapters.service import make_app

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


@pytest.fixture(scope="module")
def live():
    """The service on a real socket, with short limits."""
    import socket
    import threading
    import time

    import uvicorn

    from elench.adapters import service
    from elench.connections import TimedProtocol

    class Hasty(TimedProtocol):
        header_seconds = 0.5

    started = []
    real = service.score

    def slow(records, metrics, **more):
        started.append(records[0]["id"])
        for _ in range(int(records[0].get("wait", 0))):
            time.sleep(0.05)
            more["on_step"]()
        return real(records, metrics, **more)

    service.score = slow
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    app = service.make_app(max_bytes=50_000, max_waiting=2)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", http=Hasty))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield port, started
    server.should_exit = True
    thread.join()
    service.score = real


def _open(port):
    import socket

    return socket.create_connection(("127.0.0.1", port), timeout=10)


def _request(row):
    import json

    body = json.dumps({"records": [row], "metrics": ["f1"]}).encode()
    return b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body), body,
    )  # fmt: skip


def test_a_chunked_body_with_a_false_length_is_cut_off_at_the_limit(live):
    port, _ = live
    with _open(port) as client:
        head = b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n"
        client.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        sent = 0
        try:
            for _ in range(200):
                client.sendall(b"%x\r\n%s\r\n" % (65536, b"x" * 65536))
                sent += 65536
        except OSError:
            pass
        try:
            answer = client.recv(4096)
        except ConnectionResetError:
            answer = b""
    assert sent < 200 * 65536 and (not answer or b" 413 " in answer or b" 400 " in answer)


def test_jobs_of_clients_that_hung_up_are_dropped_and_the_line_is_bounded(live):
    import time

    port, started = live
    first = _open(port)
    first.sendall(_request(ROW | {"id": "first", "wait": 100}))
    while "first" not in started:
        time.sleep(0.02)
    waiting = [_open(port) for _ in range(2)]
    for k, client in enumerate(waiting):
        client.sendall(_request(ROW | {"id": f"gone{k}"}))
    time.sleep(0.3)
    with _open(port) as extra:  # the line is full
        extra.sendall(_request(ROW | {"id": "extra"}))
        assert b" 503 " in extra.recv(4096)
    for client in (first, *waiting):  # everybody leaves, the running job's client too
        client.close()
    time.sleep(0.3)
    begun = time.monotonic()
    with _open(port) as late:
        late.sendall(_request(ROW | {"id": "late"}))
        assert b" 200 " in late.recv(4096)
    assert time.monotonic() - begun < 3  # the abandoned 5-second job was stopped
    assert "late" in started and not {"gone0", "gone1", "extra"} & set(started)


def test_a_half_open_connection_is_dropped(live):
    port, _ = live
    with _open(port) as silent, _open(port) as slow:
        slow.sendall(b"GET /health HTTP/1.1\r\nHost:")
        assert silent.recv(10) == b"" and slow.recv(10) == b""


def test_a_body_that_drips_is_given_up(monkeypatch):
    import asyncio

    from elench import connections

    monkeypatch.setattr(connections, "SLOWEST", 1000.0)

    async def drip():
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    with pytest.raises(connections.TooSlow):
        asyncio.run(asyncio.wait_for(connections.read_body(drip, 10_000, pause=0.2), 60))

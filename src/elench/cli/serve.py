"""`elench serve`: scores over HTTP."""

from __future__ import annotations

import socket

import click

from elench.cli._options import model_options, models_from, say_unlike_paper
from elench.errors import UsageError


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=8077, show_default=True)
@click.option("--max-bytes", type=click.IntRange(1), default=10_000_000, show_default=True, help="Largest body.")
@click.option("--max-seconds", type=click.FloatRange(0, min_open=True), default=120.0, show_default=True)
@click.option("--max-waiting", type=click.IntRange(0), default=16, show_default=True, help="Jobs that may wait.")
@model_options
def command(
    host: str, port: int, max_bytes: int, max_seconds: float, max_waiting: int, family: str, model: tuple[str, ...],
    dtype: str, device: str | None, pull: bool,
) -> None:  # fmt: skip
    """Serve POST /score (records and metric specs in, scores and evidence out), /metrics, /health and /docs."""
    from elench.adapters.service import make_app
    from elench.connections import TimedProtocol
    from elench.metrics import all_metrics, metric

    models = models_from(family, model, dtype, device, pull)
    say_unlike_paper(models, [metric(name) for name in all_metrics()])
    app = make_app(models, max_bytes, max_seconds, max_waiting)
    import uvicorn

    try:
        kind = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, port), family=kind) as taken:
            port = taken.getsockname()[1]
    except OSError as error:
        raise UsageError(f"--host {host} --port {port}: cannot listen there ({error.strerror or error})") from None
    click.echo(f"POST http://{host}:{port}/score   documentation: http://{host}:{port}/docs", err=True)
    uvicorn.run(app, host=host, port=port, log_level="warning", http=TimedProtocol)

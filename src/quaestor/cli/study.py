"""`quaestor study`: human evaluation from a file of outputs to a ranking that can be defended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quaestor.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from quaestor.study.store import Store

FOLDER = click.argument("folder", type=click.Path(path_type=Path))
DATABASE = click.option(
    "--db", metavar="URL", help="PostgreSQL: postgresql://user:password@host/name. Default: SQLite."
)


@click.group("study")
def command() -> None:
    """Ask people: design, serve, watch, analyse, simulate, export."""


def _open(folder: Path, db: str | None) -> Store:
    try:
        from quaestor.study.folder import load_study
        from quaestor.study.store import Store

        return Store(load_study(folder), db)
    except ModuleNotFoundError as error:
        extra = "postgres" if "psycopg" in str(error) else "study"
        raise MissingExtra("quaestor study", extra) from None


@command.command("new")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", "folder", type=click.Path(path_type=Path), required=True, help="The study folder to write."
)
@click.option("--protocol", default="qg-crowd", show_default=True, help="A shipped protocol or an own TOML file.")
@click.option("--tasks", type=click.IntRange(1), help="How many tasks; default: as many as the file fills.")
@click.option(
    "--human", metavar="SYSTEM", help="The system that stands for people; default: one named human or reference."
)
@click.option("--human-from-references", is_flag=True, help="Make a human system of the records' references.")
@click.option("--invite", multiple=True, metavar="NAME", help="Make a personal link for this rater (repeatable).")
@click.option("--keep-worker-ids", is_flag=True, help="Store worker ids as they are; default: hashed.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
def new(
    file: Path,
    folder: Path,
    protocol: str,
    tasks: int | None,
    human: str | None,
    human_from_references: bool,
    invite: tuple[str, ...],
    keep_worker_ids: bool,
    seed: int,
) -> None:
    """Design a study from the records in FILE: a folder with a plan you can read and edit."""
    from quaestor.records import read_records
    from quaestor.study.design import add_references, compose, find_human
    from quaestor.study.folder import write_study
    from quaestor.study.protocol import load_protocol
    from quaestor.study.texts import plan_text

    rules = load_protocol(protocol)
    records = list(read_records(file))
    if human_from_references:
        records = add_references(records, rules.judge)
    named = find_human(sorted({r.system or "" for r in records}), human)
    plan = compose(records, rules, tasks, named, seed)
    study = write_study(
        folder, rules, plan, records, human=named, seed=seed, keep_worker_ids=keep_worker_ids, invite=invite
    )
    click.echo(plan_text(study, len(records)))


@command.command("serve")
@FOLDER
@click.option("--host", default="127.0.0.1", show_default=True, help="0.0.0.0 to be reached from outside.")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(1, 65535))
@click.option("--address", metavar="URL", help="The public address, when a proxy with https stands before.")
@DATABASE
def serve(folder: Path, host: str, port: int, address: str | None, db: str | None) -> None:
    """Run the study: prints the link for raters and the link for you."""
    store = _open(folder, db)
    from quaestor.study.web import serve as run

    study = store.study
    base = (address or f"http://{host}:{port}").rstrip("/")
    click.echo(f"{study.protocol.title}: {len(study.tasks)} tasks, protocol {study.protocol.name}")
    click.echo(f"raters:     {base}/join/{study.secrets.join}")
    for secret, name in study.invitations.items():
        click.echo(f"  {name}: {base}/join/{study.secrets.join}?invite={secret}")
    click.echo(f"researcher: {base}/admin?token={study.secrets.admin}")
    click.echo("Stop with Ctrl-C; ratings stay.")
    run(study, store, host, port)


@command.command("status")
@FOLDER
@DATABASE
def status(folder: Path, db: str | None) -> None:
    """How the study stands."""
    store = _open(folder, db)
    from quaestor.study.progress import progress
    from quaestor.study.texts import progress_text

    click.echo(progress_text(progress(store)))


@command.command("analyse")
@FOLDER
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the report as JSON.")
@click.option("--html", "html_file", type=click.Path(path_type=Path), help="Write the report as one HTML file.")
@click.option("--against", type=click.Path(path_type=Path), help="Another run of the study: self-replication.")
@click.option("--against-db", metavar="URL", help="The other run's database, when it is not SQLite.")
@click.option("--scores", type=click.Path(path_type=Path), help="Output of `quaestor score` for the study's records.")
@click.option("--metric", help="Which metric of --scores feeds the prediction-powered estimates; default: the first.")
@click.option("--unfiltered", is_flag=True, help="Keep every rater, whatever the filter says.")
@click.option(
    "--difference", default=0.1, show_default=True, help="Planning: the difference of two systems to be found."
)
@click.option("--power", default=0.8, show_default=True, type=click.FloatRange(0.01, 0.99))
@click.option(
    "--draws", default=1000, show_default=True, type=click.IntRange(100), help="Bootstrap and permutation draws."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
@DATABASE
def analyse(
    folder: Path,
    json_file: Path | None,
    html_file: Path | None,
    against: Path | None,
    against_db: str | None,
    scores: Path | None,
    metric: str | None,
    unfiltered: bool,
    difference: float,
    power: float,
    draws: int,
    seed: int,
    db: str | None,
) -> None:
    """From ratings to a ranking: filter, standardised scores, clusters, agreement, replication, power, cost."""
    if difference <= 0:
        raise UsageError("--difference must be above 0")
    store = _open(folder, db)
    from quaestor.study.analyse import Options, analyse_study
    from quaestor.study.report import as_html, as_json, as_text

    other = _open(against, against_db) if against else None
    options = Options(unfiltered, difference, power, draws, seed, scores, metric)
    report = analyse_study(store, other, options)
    click.echo(as_text(report))
    if json_file:
        json_file.write_text(as_json(report), "utf-8")
    if html_file:
        html_file.write_text(as_html(report), "utf-8")


@command.command("simulate")
@FOLDER
@click.option("--raters", default=60, show_default=True, type=click.IntRange(2), help="How many raters come.")
@click.option("--tasks-per-rater", default=2, show_default=True, type=click.IntRange(1))
@click.option("--kinds", default="", metavar="KIND=SHARE,…", help="The crowd; default: the mixture in the guide.")
@click.option("--runs", default=20, show_default=True, type=click.IntRange(1))
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
@click.option("--fill", type=click.Path(path_type=Path), help="Also write the first run as a study folder of its own.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the figures as JSON.")
def simulate(
    folder: Path,
    raters: int,
    tasks_per_rater: int,
    kinds: str,
    runs: int,
    seed: int,
    fill: Path | None,
    json_file: Path | None,
) -> None:
    """Judge the protocol before money is spent: simulated raters of known kinds, and what the filter makes of them."""
    from quaestor.study.folder import load_study
    from quaestor.study.simulate import Crowd, fill_study, simulate_study, simulation_text

    study = load_study(folder)
    crowd = Crowd.parse(kinds, raters, tasks_per_rater)
    result = simulate_study(study, crowd, runs, seed)
    click.echo(simulation_text(result))
    if fill:
        fill_study(study, fill, crowd, seed)
        click.echo(f"the first run as a study: {fill}")
    if json_file:
        json_file.write_text(result.to_json(), "utf-8")


@command.command("export")
@FOLDER
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="By its ending: .jsonl or .csv.")
@click.option(
    "--records", "as_records", is_flag=True, help="The records with `human` and `ratings`, for quaestor meta."
)
@click.option("--raw", is_flag=True, help="With --records: raw ratings even where the protocol standardises.")
@click.option("--unfiltered", is_flag=True, help="With --records: keep every rater, whatever the filter says.")
@DATABASE
def export(folder: Path, output: Path, as_records: bool, raw: bool, unfiltered: bool, db: str | None) -> None:
    """Take the ratings out: one row per rating, or records ready for `quaestor meta`."""
    store = _open(folder, db)
    from quaestor.records import write_records
    from quaestor.study.export import ratings_csv, ratings_jsonl
    from quaestor.study.rated import rated_records

    if as_records:
        records = rated_records(store, raw=raw, unfiltered=unfiltered)
        write_records(records, output)
        click.echo(f"{output}: {len(records)} rated records")
        return
    if output.suffix not in (".jsonl", ".csv"):
        raise UsageError(f"{output}: write .jsonl or .csv")
    text = ratings_jsonl(store) if output.suffix == ".jsonl" else ratings_csv(store)
    output.write_text(text, "utf-8")
    rows = text.count("\n") - (output.suffix == ".csv")
    click.echo(f"{output}: {rows} ratings")

"""`elench study`: human evaluation from a file of outputs to a ranking that can be defended."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elench.cli._input import judge_option, map_option
from elench.cli._options import draws_option, seed_option
from elench.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from elench.records.source import Source
    from elench.study.collect.store import Store

FOLDER = click.argument("folder", type=click.Path(path_type=Path))
DATABASE = click.option(
    "--db", metavar="URL", help="PostgreSQL: postgresql://user:password@host/name. Default: SQLite."
)


@click.group("study")
def command() -> None:
    """Ask people: design, serve, watch, analyse, simulate, export."""


def _open(folder: Path, db: str | None) -> Store:
    try:
        from elench.study.collect.store import Store
        from elench.study.folder import load_study, note_database, require_database

        study = load_study(folder)
        require_database(folder, db)
        store = Store(study, db)
        note_database(folder, db)
        return store
    except ModuleNotFoundError as error:
        extra = "postgres" if "psycopg" in str(error) else "study"
        raise MissingExtra("elench study", extra) from None


@command.command("new")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", "folder", type=click.Path(path_type=Path), required=True, help="The study folder to write."
)
@click.option("--protocol", default="qg-crowd", show_default=True, help="A shipped protocol or your own TOML file.")
@click.option("--qc", type=click.Choice(["paper"]), help="Quality control as published, not the protocol's own.")
@click.option("--tasks", type=click.IntRange(1), help="How many tasks; default: as many as the file fills.")
@click.option("--choose", type=click.IntRange(1), metavar="N", help="Show only the N most informative passages.")
@click.option("--scores", type=click.Path(path_type=Path), help="With --choose: output of `elench score`.")
@click.option("--human", metavar="SYSTEM", help="The human system; default: one named human, reference or gold.")
@click.option("--human-from-references", is_flag=True, help="Make a human system of the records' references.")
@click.option("--compare", metavar="A:B", help="The comparison that the study is planned for; default: all pairs.")
@click.option("--adaptive", is_flag=True, help="Ask no further about systems whose difference is certain.")
@click.option("--invite", multiple=True, metavar="NAME", help="Make a personal link for this rater (repeatable).")
@click.option("--exclude", type=click.Path(path_type=Path), help="File of worker ids, one per line: not admitted.")
@click.option(
    "--exclude-study",
    multiple=True,
    metavar="FOLDER[,URL]",
    help="An earlier study whose raters are not admitted (repeatable); URL: its PostgreSQL database.",
)
@click.option("--keep-worker-ids", is_flag=True, help="Store worker ids as they are; default: hashed.")
@seed_option
@judge_option
@map_option
def new(
    file: Source, folder: Path, protocol: str, qc: str | None, tasks: int | None, choose: int | None,
    scores: Path | None, human: str | None, human_from_references: bool, compare: str | None, adaptive: bool,
    invite: tuple[str, ...], exclude: Path | None, exclude_study: tuple[str, ...], keep_worker_ids: bool, seed: int,
) -> None:  # fmt: skip
    """Design a study from the records in FILE: a folder with a plan you can read and edit."""
    from elench.records.record import read_records
    from elench.study.design.checks import check_kinds, warnings
    from elench.study.design.choose import choose_records
    from elench.study.design.compose import add_references, compose, find_human, judged_after_one_task
    from elench.study.design.overview import plan_text
    from elench.study.design.protocol_file import load_protocol, with_paper_filter
    from elench.study.folder import write_study

    rules = load_protocol(protocol)
    if qc is not None:
        rules = with_paper_filter(rules)
    records = list(read_records(file))
    try:
        check_kinds(records, rules)
    except UsageError as wrong:
        raise UsageError(f"{file.name}: {wrong}") from None
    if human_from_references:
        records = add_references(records, rules.judge)
    systems = sorted({r.system or "" for r in records})
    named = find_human(systems, human)
    if not judged_after_one_task(len(systems), named is not None, rules):
        rules = with_paper_filter(rules)
        click.echo(
            f"note: {len(systems)} systems make tasks too small for the permutation test, so raters are judged as "
            "published (--qc paper)",
            err=True,
        )
    count = len(records)
    if choose is not None:
        records = choose_records(records, rules.judge, choose, scores)
        if scores is not None:
            click.echo(
                "note: on the rated file where it was tested, choosing with --scores decided no more pairs of systems "
                "than random passages; without --scores it did",
                err=True,
            )
    elif scores is not None:
        raise UsageError("--scores needs --choose")
    for warning in warnings(records, rules):
        click.echo(f"warning: {warning}", err=True)
    study = write_study(
        folder, rules, compose(records, rules, tasks, named, seed), records, human=named, seed=seed,
        keep_worker_ids=keep_worker_ids, invite=invite, adaptive=adaptive, compare=_pair(compare, systems),
        earlier=[_earlier(old) for old in exclude_study], exclude=_worker_ids(exclude),
    )  # fmt: skip
    click.echo(plan_text(study, count))


def _pair(text: str | None, systems: list[str]) -> tuple[str, str] | None:
    if text is None:
        return None
    first, _, second = text.partition(":")
    for name in (first, second):
        if name not in systems:
            raise UsageError(f"--compare {text}: no system {name!r}; write A:B with two of {', '.join(systems)}")
    return first, second


def _worker_ids(path: Path | None) -> list[str]:
    if path is None:
        return []
    if not path.is_file():
        raise UsageError(f"--exclude {path}: no such file")
    return [line.strip() for line in path.read_text("utf-8").splitlines() if line.strip()]


def _earlier(text: str) -> tuple[str, list[str]]:
    """The key of an earlier study and the pseudonyms of those who took part in it."""
    from elench.study.analyse.sittings import rater_facts

    folder, *url = re.split(r",(?=postgres(?:ql)?://)", text, maxsplit=1)  # a folder's name may have commas
    store = _open(Path(folder), url[0] if url else None)
    names = [facts.id for facts in rater_facts(store)]
    store.close()
    if not names:
        raise UsageError(f"--exclude-study {text}: nobody took part in that study, so nobody would be excluded")
    return store.study.secrets.key, names


@command.command("serve")
@FOLDER
@click.option("--host", default="127.0.0.1", show_default=True, help="0.0.0.0 to be reached from outside.")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(1, 65535))
@click.option("--address", metavar="URL", help="The public address behind a proxy: decides links, cookies, headers.")
@click.option("--proxy", default="127.0.0.1", show_default=True, help="With --address: whose headers are trusted.")
@DATABASE
def serve(folder: Path, host: str, port: int, address: str | None, proxy: str, db: str | None) -> None:
    """Run the study: prints the link for raters and the link for you."""
    store = _open(folder, db)
    from elench.study.collect.actions import all_invitations
    from elench.study.collect.site import Site
    from elench.study.collect.web import serve as run

    study = store.study
    site = Site.at(address, host, port)
    click.echo(f"{study.protocol.title}: {len(study.tasks)} tasks, protocol {study.protocol.name}")
    click.echo(f"raters:     {site.join(study.secrets.join)}")
    for secret, name in all_invitations(store).items():
        click.echo(f"  {name}: {site.join(study.secrets.join)}?invite={secret}")
    click.echo(f"researcher: {site.address}/admin?token={study.secrets.admin}")
    click.echo("Stop with Ctrl-C; ratings are kept.")
    run(study, store, host, port, site, proxy)


@command.command("status")
@FOLDER
@DATABASE
def status(folder: Path, db: str | None) -> None:
    """Progress, cost to completion, chance of a decision, raters."""
    store = _open(folder, db)
    from elench.study.collect.progress import progress
    from elench.study.design.overview import progress_text

    click.echo(progress_text(progress(store)))


@command.command("extend")
@FOLDER
@click.option("--raters", "more", type=click.IntRange(1), required=True, help="How many more per task.")
@click.option("--task", help="Only this task; default: all.")
@click.option("--reason", default="", help="Kept in the event log.")
@DATABASE
def extend(folder: Path, more: int, task: str | None, reason: str, db: str | None) -> None:
    """Ask for more raters, also while the study runs."""
    store = _open(folder, db)
    from elench.study.collect.actions import extend as act

    act(store, more, task, reason, actor="command")
    click.echo(f"{task or 'all tasks'}: {more} more rater(s) each")


@command.command("invite")
@FOLDER
@click.argument("names", nargs=-1, required=True)
@click.option("--address", metavar="URL", default="http://127.0.0.1:8765", show_default=True, help="As given to serve.")
@DATABASE
def invite_raters(folder: Path, names: tuple[str, ...], address: str, db: str | None) -> None:
    """Make personal links, also while the study runs."""
    store = _open(folder, db)
    from elench.study.collect.actions import invite as act

    for name, secret in act(store, names, actor="command").items():
        click.echo(f"{name}: {address.rstrip('/')}/join/{store.study.secrets.join}?invite={secret}")


@command.command("exclude")
@FOLDER
@click.argument("rater")
@click.option("--reason", required=True, help="Kept in the event log.")
@click.option("--readmit", is_flag=True, help="The opposite: count the rater's work whatever the filter says.")
@DATABASE
def exclude_rater(folder: Path, rater: str, reason: str, readmit: bool, db: str | None) -> None:
    """Leave a rater's work out and free its places."""
    store = _open(folder, db)
    from elench.study.collect import actions

    (actions.readmit if readmit else actions.exclude)(store, rater, reason, actor="command")
    click.echo(f"{rater}: {'readmitted' if readmit else 'excluded'}")


@command.command("pay")
@FOLDER
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The CSV file to write.")
@click.option(
    "--for", "kind", type=click.Choice(["all", "mturk", "prolific", "bonus"]), default="all", show_default=True,
    help="mturk: approve/reject/bonus with reasons; prolific: submissions; bonus: per rater.",
)  # fmt: skip
@DATABASE
def pay(folder: Path, output: Path, kind: str, db: str | None) -> None:
    """Who is to be paid, with a reason for each decision."""
    store = _open(folder, db)
    from elench.study.collect.payments import PLATFORM_FILES

    text = PLATFORM_FILES[kind](store)
    output.write_text(text, "utf-8")
    store.act(lambda c: None, "command", "exported", f"payments {kind}")
    click.echo(f"{output}: {text.count(chr(10)) - 1} rows")


@command.command("analyse")
@FOLDER
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the report as JSON.")
@click.option("--html", "html_file", type=click.Path(path_type=Path), help="Write the report as one HTML file.")
@click.option("--against", type=click.Path(path_type=Path), help="Another run of the study: self-replication.")
@click.option("--against-db", metavar="URL", help="The other run's database, when it is not SQLite.")
@click.option("--scores", type=click.Path(path_type=Path), help="Output of `elench score` for the study's records.")
@click.option("--metric", help="Which metric of --scores feeds the prediction-powered estimates; default: the first.")
@click.option("--unfiltered", is_flag=True, help="Keep every rater, whatever the filter says.")
@click.option(
    "--difference", default=0.1, show_default=True, help="Planning: the difference of two systems to be found."
)
@click.option("--power", default=0.8, show_default=True, type=click.FloatRange(0.01, 0.99))
@draws_option(1000)
@seed_option
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
    from elench.show.study_tables import as_html, as_json, as_text
    from elench.study.analyse.ranking import Options, analyse_study

    other = _open(against, against_db) if against else None
    options = Options(unfiltered, difference, power, draws, seed, scores, metric)
    report = analyse_study(store, other, options)
    click.echo(as_text(report), nl=False)
    if json_file:
        json_file.write_text(as_json(report), "utf-8")
    if html_file:
        html_file.write_text(as_html(report), "utf-8")


@command.command("simulate")
@FOLDER
@click.option("--raters", default=60, show_default=True, type=click.IntRange(2), help="Number of raters.")
@click.option("--tasks-per-rater", default=2, show_default=True, type=click.IntRange(1))
@click.option("--kinds", default="", metavar="KIND=SHARE,…", help="The crowd; default: the mixture in the guide.")
@click.option("--runs", default=20, show_default=True, type=click.IntRange(1))
@seed_option
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
    from elench.show.study_tables import simulation_text
    from elench.study.analyse.crowd import Crowd
    from elench.study.analyse.simulate import as_published, fill_study, simulate_study
    from elench.study.folder import load_study

    study = load_study(folder)
    crowd = Crowd.parse(kinds, raters, tasks_per_rater)
    result = simulate_study(study, crowd, runs, seed)
    differs = study.protocol.filter.kind == "permutation"
    published = simulate_study(as_published(study), crowd, runs, seed) if differs else None
    click.echo(simulation_text(result, published), nl=False)
    if fill:
        fill_study(study, fill, crowd, seed)
        click.echo(f"the first run as a study: {fill}")
    if json_file:
        json_file.write_text(result.to_json(), "utf-8")


@command.command("export")
@FOLDER
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="By its ending: .jsonl or .csv.")
@click.option("--records", "as_records", is_flag=True, help="The records with `human` and `ratings`, for elench meta.")
@click.option("--raters", "as_raters", is_flag=True, help="One row per rater: verdict, flags, survey answers.")
@click.option("--raw", is_flag=True, help="With --records: raw ratings even where the protocol standardises.")
@click.option("--unfiltered", is_flag=True, help="With --records: keep every rater, whatever the filter says.")
@DATABASE
def export(
    folder: Path, output: Path, as_records: bool, as_raters: bool, raw: bool, unfiltered: bool, db: str | None
) -> None:
    """Take the ratings out: one row per rating or per rater, with a data dictionary, or records for meta and
    calibrate."""
    if as_records and as_raters:
        raise UsageError("--records and --raters write different files: choose one")
    if (raw or unfiltered) and not as_records:
        raise UsageError(
            f"{'--raw' if raw else '--unfiltered'} needs --records; without --records every rating is exported as it "
            "was given, with the verdict on its rater"
        )
    store = _open(folder, db)
    from elench.records.record import write_records
    from elench.study.analyse import export as write
    from elench.study.analyse.rated import rated_records

    if as_records:
        records = rated_records(store, raw=raw, unfiltered=unfiltered)
        write_records(records, output)
        store.act(lambda c: None, "command", "exported", str(output))
        click.echo(f"{output}: {len(records)} rated records")
        return
    if output.suffix not in (".jsonl", ".csv"):
        raise UsageError(f"{output}: write .jsonl or .csv")
    rows = list(write.rater_rows(store) if as_raters else write.rating_rows(store))
    columns = write.rater_columns(store.study) if as_raters else write.COLUMNS
    text = write.as_jsonl(rows) if output.suffix == ".jsonl" else write.as_csv(rows, columns)
    output.write_text(text, "utf-8")
    words = output.with_suffix(".dictionary.json")
    words.write_text(json.dumps(write.dictionary(store.study), indent=1, ensure_ascii=False) + "\n", "utf-8")
    store.act(lambda c: None, "command", "exported", str(output))
    click.echo(f"{output}: {len(rows)} {'raters' if as_raters else 'ratings'}; what each column means: {words}")

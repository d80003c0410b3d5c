"""`elench calibrate`: a profile, learned from ratings of your own, that predicts what people would say."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elench.cli._options import metrics_from, model_options, models_for, say_unasked, seed_option, table_width

if TYPE_CHECKING:
    from elench.metrics.profile import ProfileFile
    from elench.models.base import ModelSet


@click.command()
@click.argument("rated", required=False, type=click.Path(path_type=Path))
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="The profile, a JSON file.")
@click.option(
    "--shipped",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DATA",
    help="Make elench's own profiles from the rated files in DATA; -o is then a folder.",
)
@click.option("--keep", type=click.Path(path_type=Path), help="With --shipped: folder that keeps the scores.")
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(("questions", "answers", "summaries")),
    help="With --shipped: make this profile anew (repeatable), keep the others.",
)
@click.option("-m", "--metrics", "specs", multiple=True, metavar="SPEC[,SPEC…]", help="Metrics to choose from.")
@click.option("--scores", "score_files", multiple=True, type=click.Path(path_type=Path), help="Output of elench score.")
@click.option("-d", "--dimension", "dimensions", multiple=True, help="Only this human dimension (repeatable).")
@click.option(
    "--prior",
    metavar="PROFILE",
    help="Profile to fall back on where ratings are few, or none.  [default: the shipped one]",
)
@click.option("--docs", type=click.Path(path_type=Path), help="With --shipped: write the results page here.")
@click.option(
    "--sample",
    type=click.IntRange(0),
    default=16,
    show_default=True,
    help="Number of records used to time each metric.",
)
@seed_option
@model_options
def command(
    rated: Path | None, out: Path, shipped: Path | None, keep: Path | None, only: tuple[str, ...],
    specs: tuple[str, ...], score_files: tuple[Path, ...], dimensions: tuple[str, ...], prior: str | None,
    docs: Path | None, sample: int, seed: int, family: str, model: tuple[str, ...], dtype: str, device: str | None,
    pull: bool,
) -> None:  # fmt: skip
    """Learn from the ratings in RATED which mix of metrics predicts people, and write it as a profile.

    Use it like any metric: elench score FILE -m profile:OUT#dimension (or profile:OUT for all dimensions)."""
    from elench.errors import UsageError
    from elench.evaluate.calibrate import calibrate, measure_costs
    from elench.evaluate.calibrate_data import CANDIDATES, file_source, rated_table, text_hashes
    from elench.metrics import metric
    from elench.metrics.profile import read_profile

    if not out.parent.is_dir():
        raise UsageError(f"{out}: its folder does not exist")
    metrics = metrics_from(specs) if specs else []
    models = models_for(metrics, family, model, dtype, device, pull)
    if not metrics and not score_files:
        say_unasked(models, [metric(spec) for candidates in CANDIDATES.values() for spec in candidates])
    if shipped is not None:
        contents = _make_shipped(shipped, out, keep or out, only, models, sample, seed)
        if docs is not None:
            from elench.show.profiles_page import profiles_page

            docs.write_text(profiles_page(contents), encoding="utf-8")
        return
    if rated is None:
        raise UsageError("no rated file given: elench calibrate RATED.jsonl -o profile.json")
    earlier = read_profile(prior) if prior and prior != "none" else None
    table, judge = rated_table(rated, score_files, metrics, dimensions, models)
    if prior is None:
        earlier = _shipped_prior(judge, table.metrics)
    if earlier and rated.stem in earlier.learned_from:
        known = f"the profile leaned on learned from a file called {rated.name}, so r may be too high; try --prior none"
        table = replace(table, notes=(*table.notes, known))
    costs = measure_costs(table, table.metrics, sample, models) if sample else {}
    source = {**file_source(rated, table), "texts": text_hashes(table)}
    content = calibrate(table, judge, costs, source=source, prior=earlier, seed=seed)
    out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    show(content, str(out))


def _shipped_prior(judge: str, metrics: Sequence[str]) -> ProfileFile | None:
    """The profile that comes with elench for what is judged, where it shares at least two metrics."""
    from elench.metrics.profile import read_shipped

    found = read_shipped(judge)
    shared = set(metrics) & set(found.content["metrics"]) if found else ()
    return found if len(shared) > 1 else None


def _make_shipped(
    data: Path, out: Path, keep: Path, only: Collection[str], models: ModelSet, sample: int, seed: int
) -> dict[str, Mapping[str, Any]]:
    from elench.evaluate.calibrate_shipped import SHIPPED, make_shipped
    from elench.metrics.profile import read_profile

    out.mkdir(exist_ok=True)
    keep.mkdir(exist_ok=True)
    contents: dict[str, Mapping[str, Any]] = {}
    for name in SHIPPED:
        if only and name not in only:
            contents[name] = read_profile(name).content
            continue
        content = contents[name] = make_shipped(name, data, keep, models, sample, seed)
        (out / f"{name}.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        show(content, name)
        show_elsewhere(content)
    return contents


def show_elsewhere(content: dict[str, Any]) -> None:
    """Print how a shipped profile does on files left out, and how its first file does with few ratings."""
    for file, tries in content["elsewhere"].items():
        for found in tries:
            single, peer = (f"{one[1]:.3f} {one[0]}" if one else "–" for one in map(found.get, BESIDE))
            limits = " to ".join(f"{x:.2f}" for x in found["ci95"])
            what = f"{file} {found['dimension']}"
            click.echo(
                f"  {what}: r = {found['r']:.3f} ({limits}, n = {found['n']}); best single {single}; peer {peer}"
            )
    first = content["first_file"]
    for name, r in first["r"].items():
        few = first["r_few"][name]
        click.echo(
            f"  {first['file']} {name}: r = {r:.3f}; with {first['few']} ratings {'–' if few is None else f'{few:.3f}'}"
        )
    share, n = first["coverage"]["share"], first["coverage"]["n"]
    click.echo(f"  {first['file']}: {share:.1%} of the means of systems within their 95 % interval (n = {n})")
    for file, tries in first["alone"].items():
        for found in tries:
            click.echo(f"  learned from {first['file']} alone, {file} {found['dimension']}: r = {found['r']:.3f}")


BESIDE = ("best_single", "best_peer")


def show(content: dict[str, Any], name: str) -> None:
    """Print what a profile can do: agreement on unseen groups, against the best single metric, and its cost."""
    from elench.grid import Cell, Grid, limits, number
    from elench.show.tables import render

    header = ("dimension", "n", "r", "best single metric", "its r", "ms", "cheap r", "cheap ms", "+40 ratings")
    rows = []
    for dimension, found in content["dimensions"].items():
        full, cheap, single, more = found["full"], found["cheap"], found["single"], found["more_ratings"]
        rows.append(
            (
                dimension,
                str(full["n"]),
                Cell(number(full["r"]), under=limits(*full["ci95"]).strip("[]")),
                single["metric"],
                number(single["r"]),
                _ms(full["ms"]),
                number(cheap["r"]),
                _ms(cheap["ms"]),
                f"+{number(more['gain'])}" if more else "–",
            )
        )
    made_of = [
        (dimension, ", ".join(f"{spec} {weight:+.2g}" for spec, weight in list(found["full"]["weights"].items())[:5]),
         f"±{found['full']['error95']:.2g} ({found['scale'][0]:.3g} to {found['scale'][1]:.3g})",
         ", ".join(f"{point['ratings']}: {number(point['r'])}" for point in found["curve"]) or "–")
        for dimension, found in content["dimensions"].items()
    ]  # fmt: skip
    data = content["data"]
    title = f"{name}: {data['records']} records, {data['groups']} groups of {data['file']}"
    grids = [
        Grid(title, header, tuple(rows), "lrrl"),
        Grid(
            "", ("dimension", "what carries it, with weights", "95 % of errors", "ratings: r"), tuple(made_of), "llll"
        ),
    ]
    click.echo(render(grids, _notes(content, name), "text", table_width()), nl=False)


def _notes(content: dict[str, Any], name: str) -> list[str]:
    """What the tables of a profile mean, and how far to trust them."""
    from elench.metrics.profile import read_shipped

    dimensions = content["dimensions"]
    notes = ["r: Pearson on groups not trained on (5 folds), 95 % bootstrap interval over groups", *content["notes"]]
    if weak := [d for d, found in dimensions.items() if (found["full"]["ci95"][0] or 0.0) <= 0]:
        notes.append(f"{', '.join(weak)}: the interval of r includes 0, so the predictions may be worthless")
    if content.get("prior"):
        shipped = read_shipped(content["judge"])
        which = "shipped profile" if shipped and shipped.sha256 == content["prior"] else "profile"
        notes.append(f"few ratings lean on the {which} {content['prior'][:12]} (--prior none: on nothing)")
    notes.append("weight: change of the predicted rating when the metric rises by one standard deviation")
    notes.append("95 % of errors: of single predictions, with the range of the ratings; ratings: r: learning curve")
    notes.append("ms: CPU time per record; cheap: the cheapest mix with 95 % of the agreement, [variant=cheap]")
    return [*notes, f"use it: elench score FILE -m profile:{name}#{next(iter(dimensions))}"]


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}" if value < 100 else f"{value:.0f}"

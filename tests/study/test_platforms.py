"""Raters from Prolific and MTurk: signed links, codes for every way out, and who is not admitted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from elench.cli.study import command
from elench.errors import UsageError
from elench.records.record import write_records
from elench.study.collect.prolific import FILE, BadToken, ProlificKeys
from elench.study.collect.site import Site
from elench.study.collect.store import Store
from elench.study.collect.web import application
from elench.study.folder import Study, load_study
from tests.study.conftest import MakeStudy, outputs
from tests.study.web import Visitor

# An RSA key made by OpenSSL 3.0 for this test, and claims signed by `openssl dgst -sha256 -sign`.
KEYS = {
    "keys": [
        {
            "kty": "RSA",
            "kid": "key1",
            "alg": "RS256",
            "e": "AQAB",
            "n": "68CJ1bHnWERfM4cM7oqBICmeizBMg-wpfeUrAn40IMBIUp56eN1BZAi3iiy68w6pTDoxb1chuonALCjjrhokajgKgfl6kMgw-xS0GWU"
            "pC2po0eRZ1L99fef-tImUVFrI1QOd_wSitVy7DeET7TEuNDCfp7j5uPUR6QGTrtA9YV0",
        }
    ]
}
HEAD = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImtleTEifQ"
GENUINE = (  # PROLIFIC_PID P9, SESSION_ID X9, until 2100, for https://study.example.org
    f"{HEAD}.eyJhdWQiOiJodHRwczovL3N0dWR5LmV4YW1wbGUub3JnIiwiZXhwIjo0MTAyNDQ0ODAwLCJwcm9saWZpYyI6eyJQUk9MSUZJQ19QSUQiOi"
    "JQOSIsIlNUVURZX0lEIjoiUzkiLCJTRVNTSU9OX0lEIjoiWDkifX0.SLVWHN5FLS5xbaWY4bLH-moeCeySXi1pbDXJKoo28t6tZlYxswsIrj-RW4Zq"
    "9Ns_nD5bcrwWLu7hr2yq4UTCRTaSonoEqJuMGBuuuQUFO7Is0vk_q6u1zczPk3LmHvnDlu-mGdPHbKtaPfw8wzTPlFl5J12XwWjqfVjUxpv-sLA"
)
LATE = (  # until November 2023
    f"{HEAD}.eyJhdWQiOiJodHRwczovL3N0dWR5LmV4YW1wbGUub3JnIiwiZXhwIjoxNzAwMDAwMDAwLCJwcm9saWZpYyI6eyJQUk9MSUZJQ19QSUQiOi"
    "JQOSIsIlNUVURZX0lEIjoiUzkiLCJTRVNTSU9OX0lEIjoiWDkifX0.J4GEcXCPwdufxKi4Dt7NQwHgtrHsDCD9jGswUmHrbK-i4LPq22f1Afo0VQ4y"
    "Hnmt9XNy9LGszDzQAypIJH8p5wpjG09H3kAzEPD45ueeacTC3IOhXeHTgaRIpiEDNmDjTcVZr1SDrg936H4Bp5J6R2YBrP8mbCLl-YyEXWu_UnI"
)
ELSEWHERE = (  # for https://other.example.org
    f"{HEAD}.eyJhdWQiOiJodHRwczovL290aGVyLmV4YW1wbGUub3JnIiwiZXhwIjo0MTAyNDQ0ODAwLCJwcm9saWZpYyI6eyJQUk9MSUZJQ19QSUQiOi"
    "JQOSIsIlNUVURZX0lEIjoiUzkiLCJTRVNTSU9OX0lEIjoiWDkifX0.pl4-WGwb4qVNvnL9arovBqLw8UcE_DxoOaSuI393Dzf8R2NT7d9m8QCBLvoy"
    "zUxqQB1Qu6wcWi7I_kRtfsNnP1b_LR8-xNB5gDLILSMwGitZ0exRPjEn8xr8XWMUmVuf_HhhOKDXXU__tleqnr1lB_iRpmV0QCOPnQe-UfoxhuA"
)


def test_a_genuine_token_opens_and_no_other_does(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(json.dumps(KEYS))
    keys = ProlificKeys(tmp_path / FILE, "study.example.org")
    assert keys.ids(GENUINE) == {"PROLIFIC_PID": "P9", "SESSION_ID": "X9", "STUDY_ID": "S9"}
    head, claims, signature = GENUINE.split(".")
    forged = f"{head}.{claims[:-4]}fX19.{signature}"
    unsigned = f"eyJhbGciOiJub25lIiwia2lkIjoia2V5MSJ9.{claims}."  # {"alg":"none","kid":"key1"}
    for token in (LATE, ELSEWHERE, forged, unsigned, GENUINE[:-2], "", "a.b.c", f"{head}.{claims}"):
        with pytest.raises(BadToken):
            keys.ids(token)
    (tmp_path / FILE).write_text('{"keys": [{"kid": "key1"}]}')
    with pytest.raises(UsageError, match="not a JSON Web Key Set"):
        ProlificKeys(tmp_path / FILE, "study.example.org")


def test_with_prolifics_keys_only_signed_links_are_admitted(make_study: MakeStudy) -> None:
    study = make_study()
    (study.folder / FILE).write_text(json.dumps(KEYS))
    store = Store(study)
    app = application(study, store, Site.at("https://study.example.org", "127.0.0.1", 8765))
    stranger = Visitor(store, app)
    stranger.get(f"/join/{study.secrets.join}?PROLIFIC_PID=P9&STUDY_ID=S9&SESSION_ID=X9")
    assert stranger.page.status_code == 400 and "lacks its ids or its signature" in stranger.page.text
    rater = Visitor(store, app)
    rater.client.base_url = "https://study.example.org"  # cookies are for https there
    assert "/t/" in rater.join(f"?prolific_token={GENUINE}")
    store.close()


def coded(folder: Path) -> Study:
    """The study with codes for every way out."""
    path = folder / "protocol.toml"
    codes = '\n[prolific]\ncompleted = "DONE"\nscreened_out = "SCREENED"\nfailed_check = "FAILED"\n'
    path.write_text(path.read_text("utf-8") + codes, "utf-8")
    return load_study(folder)


def test_prolific_raters_leave_with_the_code_of_what_happened(make_study: MakeStudy) -> None:
    """Before, whoever failed the qualification test was left without a way back."""
    leave = "https://app.prolific.com/submissions/complete?cc="
    arrive = "?PROLIFIC_PID=P1&STUDY_ID=S&SESSION_ID=X"
    store = Store(coded(make_study().folder))
    for careful, code in ((True, "DONE"), (False, "FAILED")):
        rater = Visitor(store)
        rater.join(arrive.replace("P1", f"P{careful}"))
        rater.rate_all(careful=careful)
        rater.submit()
        assert f"{leave}{code}" in rater.page.text
    store.close()
    store = Store(coded(make_study("qg-similarity", systems=4, passages=10).folder))
    rater = Visitor(store)
    rater.join(arrive)
    rater.rate_all()
    rater.post(rater.path.replace("/review", "/submit"), {"csrf": rater.csrf})
    assert "The test was not passed" in rater.page.text and f"{leave}SCREENED" in rater.page.text
    rater.join(arrive.replace("SESSION_ID=X", "SESSION_ID=Y"))
    assert f"{leave}SCREENED" in rater.page.text
    store.close()


def new(tmp_path: Path, name: str, *more: str) -> tuple[int, str, Path]:
    write_records(outputs(), tmp_path / "records.jsonl")
    done = CliRunner().invoke(command, ["new", str(tmp_path / "records.jsonl"), "-o", str(tmp_path / name), *more])
    said = str(done.exception) if isinstance(done.exception, UsageError) else done.output
    return done.exit_code, said, tmp_path / name


def test_earlier_raters_are_not_admitted_by_list_or_by_study(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("P1\n\nP2\n")
    _, _, listed = new(tmp_path, "listed", "--exclude", str(tmp_path / "ids.txt"))
    store = Store(load_study(listed))
    for worker, admitted in (("P1", False), ("P3", True)):
        rater = Visitor(store)
        rater.join(f"?PROLIFIC_PID={worker}&STUDY_ID=S&SESSION_ID=X")
        assert ("You took part in an earlier study" in rater.page.text) is not admitted
    store.close()
    _, _, second = new(tmp_path, "second", "--exclude-study", str(listed))
    store = Store(load_study(second))
    rater = Visitor(store)
    rater.join("?PROLIFIC_PID=P3&STUDY_ID=S&SESSION_ID=Z")
    assert "You took part in an earlier study" in rater.page.text
    assert "P3" not in (second / "secrets.json").read_text()  # not even the list tells who they were
    store.close()


def test_several_earlier_studies_are_excluded_also_one_with_a_comma_in_its_name(tmp_path: Path) -> None:
    earlier = [new(tmp_path, name)[2] for name in ("pilot, spring", "pilot,postgresql")]
    for folder, worker in zip(earlier, ("P1", "P2"), strict=True):
        store = Store(load_study(folder))
        Visitor(store).join(f"?PROLIFIC_PID={worker}&STUDY_ID=S&SESSION_ID=X")
        store.close()
    both = [word for folder in earlier for word in ("--exclude-study", str(folder))]
    code, said, second = new(tmp_path, "second", *both)
    assert code == 0, said
    store = Store(load_study(second))
    for worker, admitted in (("P1", False), ("P2", False), ("P3", True)):
        rater = Visitor(store)
        rater.join(f"?PROLIFIC_PID={worker}&STUDY_ID=S&SESSION_ID=Z")
        assert ("You took part in an earlier study" in rater.page.text) is not admitted
    store.close()


def test_an_earlier_study_without_raters_excludes_nobody_silently(tmp_path: Path) -> None:
    """Before, a study whose ratings are in PostgreSQL was read from an empty SQLite file."""
    _, _, first = new(tmp_path, "first")
    code, said, _ = new(tmp_path, "second", "--exclude-study", str(first))
    assert code != 0 and "nobody took part in that study" in said


def test_a_study_in_postgresql_is_not_read_from_an_empty_file(tmp_path: Path, cluster: str) -> None:
    from tests.study.cluster import wipe

    wipe(cluster)
    _, _, folder = new(tmp_path, "study")
    assert CliRunner().invoke(command, ["status", str(folder), "--db", cluster]).exit_code == 0
    without = CliRunner().invoke(command, ["status", str(folder)])
    assert isinstance(without.exception, UsageError) and "give --db postgresql://" in str(without.exception)
    assert cluster not in "".join(path.read_text() for path in folder.iterdir() if path.is_file())


def test_a_database_that_was_not_reached_leaves_the_study_in_sqlite(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    _, _, folder = new(tmp_path, "study")
    assert (
        CliRunner().invoke(command, ["status", str(folder), "--db", "postgresql://nobody@127.0.0.1:1/none"]).exit_code
    )
    assert CliRunner().invoke(command, ["status", str(folder)]).exit_code == 0

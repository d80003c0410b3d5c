"""Recognise who arrives: a worker from MTurk or Prolific, a person with an invitation, or anybody with the link."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from elench.study.collect.prolific import BadToken, ProlificKeys
from elench.study.collect.security import MTURK, Signer
from elench.study.collect.store import Arrival

MTURK_PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
COOKIE = "elench_rater"
_LONGEST = 200
_TOKEN = "prolific_token"


class BadLink(Exception):
    """A link that lacks something or was tampered with; the argument names the text for the visitor."""


@dataclass(frozen=True)
class Visitor:
    """Somebody who opens the link, before a task is handed out."""

    source: str
    worker: str
    session: str
    platform: Mapping[str, str]
    preview: bool = False
    """MTurk shows the task to workers who have not accepted it."""
    browser: str = ""
    """The cookie that this browser sent; empty: none."""
    cookie: str | None = None
    """To be set in a browser without one."""

    def arrival(self, signer: Signer) -> Arrival:
        rater = signer.pseudonym(self.source, self.worker)
        device = signer.mac("browser", self.browser) if self.browser else None
        return Arrival(rater, self.source, signer.mac("session", self.session), self.worker, self.platform, device)


def recognise(
    query: Mapping[str, str],
    cookies: Mapping[str, str],
    invitations: Mapping[str, str],
    keys: ProlificKeys | None = None,
) -> Visitor:
    """Read the parameters that the platforms add to a link; with `keys`, Prolific's must be signed."""
    if any(len(value) > _LONGEST or "\0" in value for name, value in query.items() if name != _TOKEN):
        raise BadLink("bad_link")
    known = cookies.get(COOKIE, "")
    known = known if 20 <= len(known) <= 64 else ""
    fresh = None if known else secrets.token_urlsafe(24)
    if "assignmentId" in query:
        return _mturk(query, known, fresh)
    if "PROLIFIC_PID" in query or _TOKEN in query:
        return _prolific(query, keys, known, fresh)
    if "invite" in query:
        secret = query["invite"]
        if secret not in invitations:
            raise BadLink("bad_invitation")
        return Visitor("invitation", invitations[secret], secret, {}, browser=known, cookie=fresh)
    name = known or fresh or ""
    return Visitor("link", name, name, {}, browser=known, cookie=fresh)


def _prolific(query: Mapping[str, str], keys: ProlificKeys | None, known: str, fresh: str | None) -> Visitor:
    given = {name: query.get(name, "") for name in ("PROLIFIC_PID", "SESSION_ID", "STUDY_ID")}
    if keys is not None:
        try:
            given = keys.ids(query.get(_TOKEN, ""))
        except BadToken:
            raise BadLink("bad_prolific") from None
    worker, session = given["PROLIFIC_PID"], given["SESSION_ID"]
    if not worker or not session:
        raise BadLink("bad_prolific")
    platform = {"study": given["STUDY_ID"], "session": session}
    return Visitor("prolific", worker, session, platform, browser=known, cookie=fresh)


def _mturk(query: Mapping[str, str], known: str, fresh: str | None) -> Visitor:
    assignment = query["assignmentId"]
    if assignment == MTURK_PREVIEW:
        return Visitor("mturk", "", "", {}, preview=True)
    worker, back = query.get("workerId", ""), query.get("turkSubmitTo", MTURK[0])
    if not worker or not assignment:
        raise BadLink("bad_mturk")
    if back.rstrip("/") not in MTURK:  # else a link could send ratings, and raters, to a stranger's server
        raise BadLink("bad_mturk_return")
    platform = {"assignment": assignment, "hit": query.get("hitId", ""), "submit_to": back.rstrip("/")}
    return Visitor("mturk", worker, assignment, platform, browser=known, cookie=fresh)

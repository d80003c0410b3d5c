"""Recognise who arrives: a worker from MTurk or Prolific, a person with an invitation, or anybody with the link."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from quaestor.study.security import MTURK, Signer
from quaestor.study.store import Arrival

MTURK_PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
COOKIE = "quaestor_rater"
_LONGEST = 200


class BadLink(Exception):
    """A link that lacks something or was tampered with; the message is for the visitor."""


@dataclass(frozen=True)
class Visitor:
    """Somebody at the door, before a task is handed out."""

    source: str
    worker: str
    session: str
    platform: Mapping[str, str]
    preview: bool = False
    """MTurk shows the task to workers who have not accepted it."""
    cookie: str | None = None
    """To be set in the browser of a visitor without any other identity."""

    def arrival(self, signer: Signer) -> Arrival:
        rater = signer.pseudonym(self.source, self.worker)
        return Arrival(rater, self.source, signer.mac("session", self.session), self.worker, self.platform)


def recognise(query: Mapping[str, str], cookies: Mapping[str, str], invitations: Mapping[str, str]) -> Visitor:
    """Read the parameters that the platforms add to a link."""
    if any(len(value) > _LONGEST for value in query.values()):
        raise BadLink("This link is not complete or was changed. Please open it again from where you found it.")
    if "assignmentId" in query:
        return _mturk(query)
    if "PROLIFIC_PID" in query:
        worker, session = query["PROLIFIC_PID"], query.get("SESSION_ID", "")
        if not worker or not session:
            raise BadLink("Your Prolific link lacks its ids. Please open the study again from Prolific.")
        return Visitor("prolific", worker, session, {"study": query.get("STUDY_ID", ""), "session": session})
    if "invite" in query:
        secret = query["invite"]
        if secret not in invitations:
            raise BadLink("This invitation is not valid. Please check that the link is complete.")
        return Visitor("invitation", invitations[secret], secret, {})
    known = cookies.get(COOKIE, "")
    fresh = not 20 <= len(known) <= 64
    name = secrets.token_urlsafe(24) if fresh else known
    return Visitor("link", name, name, {}, cookie=name if fresh else None)


def _mturk(query: Mapping[str, str]) -> Visitor:
    assignment = query["assignmentId"]
    if assignment == MTURK_PREVIEW:
        return Visitor("mturk", "", "", {}, preview=True)
    worker, back = query.get("workerId", ""), query.get("turkSubmitTo", MTURK[0])
    if not worker or not assignment:
        raise BadLink("Your MTurk link lacks its ids. Please open the task again from MTurk.")
    if back.rstrip("/") not in MTURK:  # else a link could send ratings, and raters, to a stranger's server
        raise BadLink("This link does not lead back to MTurk. Please open the task again from MTurk.")
    platform = {"assignment": assignment, "hit": query.get("hitId", ""), "submit_to": back.rstrip("/")}
    return Visitor("mturk", worker, assignment, platform)

"""A visitor without a browser: opens pages, fills forms, follows redirects."""

from __future__ import annotations

import html
import re
from typing import Any

from starlette.testclient import TestClient

from elench.study.collect.store import Store
from elench.study.collect.web import application
from elench.study.folder import Study


class Visitor:
    """One person with cookies of their own at a study's application."""

    def __init__(self, store: Store, app: Any = None) -> None:
        self.study: Study = store.study
        self.app = app or application(store.study, store)
        self.client = TestClient(self.app, base_url="http://study.test", raise_server_exceptions=False)
        self.page: Any = None

    def get(self, path: str, **more: Any) -> Any:
        self.page = self.client.get(path, **more)
        return self.page

    def post(self, path: str, data: dict[str, Any], **more: Any) -> Any:
        self.page = self.client.post(path, data=data, **more)
        return self.page

    @property
    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([^"]*)"', self.page.text)
        assert found, self.page.text[:500]
        return found[1]

    @property
    def path(self) -> str:
        return str(self.page.url.path)

    def join(self, query: str = "") -> str:
        """Arrive and press "I understand"; the address of the task."""
        self.get(f"/join/{self.study.secrets.join}{query}")
        action = re.search(r'<form method="post" action="([^"]*)"', self.page.text)
        assert action, self.page.text[:800]
        self.post(html.unescape(action[1]), {"csrf": self.csrf, "step": "instructions"})
        return self.path.rsplit("/", 1)[0] if self.path.count("/") == 3 else self.path

    def answers(self, answer: int = 60) -> dict[str, str]:
        return {c.field: str(answer if c.slider else 0) for c in self.study.protocol.criteria}

    def rate_all(self, answer: int = 60, careful: bool = True) -> None:
        """Rate item after item, as the pages lead; a careful rater gives bad references less."""
        bad = {item.text for task in self.study.tasks for item in task.items if item.kind == "bad"}
        while not self.path.endswith("/review"):
            shown = re.search(r'class="subject" dir="auto">([^<]*)<', self.page.text)
            lower = 40 if careful and shown and html.unescape(shown[1]) in bad else 0
            self.post(self.path, {"csrf": self.csrf, "go": "next", **self.answers(answer - lower)})
            assert self.page.status_code == 200, self.page.text[:500]

    def submit(self, feedback: str = "") -> str:
        """Submit from the review page; the completion code."""
        self.post(self.path.replace("/review", "/submit"), {"csrf": self.csrf, "feedback": feedback})
        found = re.search(r'id="code" dir="ltr">([^<]*)<', self.page.text)
        assert found, self.page.text[:800]
        return found[1]

    def enter(self, token: str | None = None) -> Any:
        """Sign in as the researcher."""
        return self.get(f"/admin?token={token or self.study.secrets.admin}")

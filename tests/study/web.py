"""A visitor without a browser: opens pages, fills forms, follows redirects."""

from __future__ import annotations

import html
import re
from typing import Any

from starlette.testclient import TestClient

from quaestor.study.folder import Study
from quaestor.study.store import Store
from quaestor.study.web import application


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
        self.post(html.unescape(action[1]), {"csrf": self.csrf})
        return self.path.rsplit("/", 1)[0] if self.path.count("/") == 3 else self.path

    def answers(self, answer: int = 60) -> dict[str, str]:
        return {c.name: str(answer if c.slider else 0) for c in self.study.protocol.criteria}

    def rate_all(self, answer: int = 60) -> None:
        """Rate item after item, as the pages lead."""
        while not self.path.endswith("/review"):
            self.post(self.path, {"csrf": self.csrf, "go": "next", **self.answers(answer)})
            assert self.page.status_code == 200, self.page.text[:500]

    def submit(self, feedback: str = "") -> str:
        """Submit from the review page; the completion code."""
        self.post(self.path.replace("/review", "/submit"), {"csrf": self.csrf, "feedback": feedback})
        found = re.search(r'id="code">([^<]*)<', self.page.text)
        assert found, self.page.text[:800]
        return found[1]

    def enter(self, token: str | None = None) -> Any:
        """Sign in as the researcher."""
        return self.get(f"/admin?token={token or self.study.secrets.admin}")

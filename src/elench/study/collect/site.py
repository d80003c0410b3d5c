"""Where a study is reached: one setting decides links, cookies and whose forwarding headers are believed."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from elench.errors import UsageError


@dataclass(frozen=True)
class Site:
    """The public address of a study."""

    address: str
    """Scheme and host, without a path: https://study.example.org"""
    proxied: bool = False
    """Whether a proxy in front of the server adds the visitor's address."""

    @staticmethod
    def at(address: str | None, host: str, port: int) -> Site:
        """The address that was given, or the one that the server listens on."""
        if address is None:
            name = f"[{host}]" if ":" in host else host
            return Site(f"http://{name}:{port}")
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.path not in ("", "/") or parts.query:
            raise UsageError(f"--address {address}: write scheme and host, such as https://study.example.org")
        return Site(f"{parts.scheme}://{parts.netloc}", proxied=True)

    @property
    def secure(self) -> bool:
        return self.address.startswith("https://")

    @property
    def host(self) -> str:
        return self.address.split("://", 1)[1]

    def join(self, token: str) -> str:
        return f"{self.address}/join/{token}"

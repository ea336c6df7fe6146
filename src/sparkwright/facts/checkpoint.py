"""Is a model on a node, and all of it?"""

import json

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Checkpoint, Unknown

_WEIGHTS = (".safetensors", ".gguf", ".bin", ".pt", ".pth")


def parse(done: Completed) -> Checkpoint | Unknown:
    """Reads the listing of commands.staging. `missing` names what the index wants and the folder lacks."""
    if not done.ok:
        return Unknown(done.stderr.strip()[:200], f"exit {done.exit_code}")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    one = {row[0]: row[1] for row in rows if len(row) == 2 and row[0] in ("path", "root", "revision", "config")}
    files = {row[2]: int(row[1]) for row in rows if row[0] == "file" and len(row) == 3 and row[1].isdigit()}
    path = one.get("path", "")
    is_file = set(files) == {""}
    return Checkpoint(
        path=path if files else "",
        root=one.get("root", ""),
        revision=one.get("revision", ""),
        bytes=sum(files.values()),
        files=len(files),
        missing=() if is_file or not path else tuple(_missing(rows, files)),
        config=one.get("config", ""),
    )


def _missing(rows: list[list[str]], files: dict[str, int]) -> list[str]:
    listed = [json.loads(row[1]) for row in rows if row[0] == "shard" and len(row) == 2]
    missing = [f"{name} (in the index)" for name in listed if files.get(name, 0) == 0]
    missing += [f"{row[1]} (unfinished download)" for row in rows if row[0] == "incomplete"]
    missing += [f"{row[1]} (broken link)" for row in rows if row[0] == "broken"]
    missing += [f"{name} (empty)" for name, size in files.items() if name.endswith(_WEIGHTS) and not size]
    if files and not listed and not any(name.endswith((*_WEIGHTS, "config.json")) for name in files):
        missing.append("no weights and no config.json")
    # The hub client in offline mode finds a snapshot only by refs/main, and a newline in it breaks the path.
    missing += ["refs/main (absent: offline loading needs it)" for row in rows if row == ["noref"]]
    missing += ["refs/main (ends with a newline)" for row in rows if row == ["badref"]]
    return missing

"""Is a model on a node, and all of it?"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from sparkwright.commands.staging import COPYING
from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Checkpoint, Unknown
from sparkwright.facts import model_config

_WEIGHTS = (".safetensors", ".gguf", ".bin", ".pt", ".pth")
_PART = re.compile(r"(?P<stem>.*-)\d{5}-of-(?P<count>\d{5})(?P<end>\.(?:safetensors|gguf|bin))", re.ASCII)
_ONE = ("path", "root", "revision", "config")
Rows = Sequence[Sequence[str]]


def parse(done: Completed) -> Checkpoint | Unknown:
    """Reads the listing of commands.staging. `missing` names each file that is absent, cut short or unfinished."""
    if not done.ok:
        return Unknown(done.stderr.strip()[:200], f"exit {done.exit_code}")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    one = {row[0]: row[1] for row in rows if len(row) == 2 and row[0] in _ONE}
    files = {row[2]: int(row[1]) for row in rows if row[0] == "file" and len(row) == 3 and row[1].isdigit()}
    path = one.get("path", "")
    missing = tuple(f"{name} ({why})" if name else why for name, why in _missing(rows, files).items())
    return Checkpoint(
        path=path if files else "",
        root=one.get("root", ""),
        revision=one.get("revision", ""),
        bytes=sum(files.values()),
        files=len(files),
        missing=missing if path else (),
        config=one.get("config", ""),
        shape=model_config.parse(one["config"]) if one.get("config") else None,
    )


def _missing(rows: Rows, files: Mapping[str, int]) -> dict[str, str]:
    """File -> what is wrong with it, the plainest reason only; '' is the path itself."""
    found = dict(_marked(rows))
    found |= {name: "empty" for name, size in files.items() if not size and (name or "x.gguf").endswith(_WEIGHTS)}
    listed = [json.loads(row[1]) for row in rows if row[0] == "shard" and len(row) == 2]
    for name in (*listed, *_parts(files)):
        if name not in files:
            found.setdefault(name, "absent, and the model needs it")
    if files and not listed and not found and not _is_model(files):
        found[""] = "no weights and no config.json"
    return found


def _marked(rows: Rows) -> Iterator[tuple[str, str]]:
    for kind, *rest in rows:
        if kind == "incomplete" and rest:
            yield rest[0], "a copy that was not finished" if rest[0].endswith(COPYING) else "unfinished download"
        elif kind == "broken" and rest:
            yield rest[0], "broken link"
        # The hub client in offline mode finds a snapshot only by refs/main, and a newline in it breaks the path.
        elif kind == "noref":
            yield "refs/main", "absent: offline loading needs it"
        elif kind == "badref":
            yield "refs/main", "ends with a newline"


def _parts(files: Mapping[str, int]) -> Iterator[str]:
    """All files of a model in parts, as the name of any one of them promises; also without an index."""
    matches = filter(None, map(_PART.fullmatch, files))
    for stem, count, end in {(match["stem"], match["count"], match["end"]) for match in matches}:
        yield from (f"{stem}{number:05}-of-{count}{end}" for number in range(1, int(count) + 1))


def _is_model(files: Mapping[str, int]) -> bool:
    return "" in files or any(name.endswith((*_WEIGHTS, "config.json")) for name in files)

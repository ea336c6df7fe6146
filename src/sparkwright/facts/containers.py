"""What the Docker daemon has besides our ranks: containers, images, the NVIDIA container toolkit."""

import json
import re

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.fabric_facts import Container, Containers, Image
from sparkwright.domain.facts import Unknown
from sparkwright.facts.fact import Fact, Plain, not_understood, sections
from sparkwright.remote.host import script, texts

_sh = texts(__name__)

_MOST = 200


def containers() -> Command:
    """Sections `client` (present, absent), `containers` and `images` (a JSON object a line), `daemon` (lines
    of daemon.json about the logs' size and NVIDIA's runtime), `toolkit` (nvidia-ctk's version)."""
    return script(_sh("containers"), str(_MOST), timeout=15.0)


_VERSION = re.compile(r"version ([0-9]+(?:\.[0-9]+)+)", re.ASCII)
_SHOWN = 6
Row = dict[str, object]


def parse(done: Completed) -> Containers | Unknown:
    """Without Docker, or without the right to ask it: no containers and no images (facts/docker.py has the reason)."""
    parts = sections(done.stdout)
    if "client" not in parts:
        return not_understood(done, "docker")
    version = _VERSION.search(parts.get("toolkit", ""))
    return Containers(
        containers=tuple(_container(row) for row in _rows(parts.get("containers", ""))),
        images=tuple(_image(row) for row in _rows(parts.get("images", ""))),
        toolkit=version[1] if version else "",
        daemon=tuple(line.strip() for line in parts.get("daemon", "").splitlines()),
    )


def _rows(text: str) -> list[Row]:
    found = []
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        found += [row] if isinstance(row, dict) else []
    return found


def _container(row: Row) -> Container:
    devices = row.get("devices")
    asked = [entry for entry in devices if isinstance(entry, dict)] if isinstance(devices, list) else []
    # The first words up to the first option: an option's value may be a key.
    args = row.get("args")
    words = [_text(row, "path"), *(str(word) for word in (args if isinstance(args, list) else []))]
    first = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    return Container(
        name=_text(row, "name").removeprefix("/"),
        image=_text(row, "image"),
        running=row.get("running") is True,
        restart=_text(row, "restart"),
        gpu=_text(row, "runtime") == "nvidia" or any("gpu" in json.dumps(entry) for entry in asked),
        ours=bool(row.get("ours")),
        network=_text(row, "network"),
        command=" ".join(words[: min(first, _SHOWN)])[:200],
    )


def _image(row: Row) -> Image:
    tags = row.get("tags")
    named = tuple(filter(Plain.IMAGE.fits, tags)) if isinstance(tags, list) else ()
    return Image(Plain.IMAGE_ID.only(_text(row, "id")), _text(row, "arch"), named)


def _text(row: Row, name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


CONTAINERS: Fact[Containers] = Fact(containers(), parse)

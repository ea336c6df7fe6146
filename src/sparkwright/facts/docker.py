"""The Docker daemon as this user sees it (from its JSON and the socket, never from wording), and what else it has."""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from sparkwright.domain.command import Completed
from sparkwright.domain.fabric_facts import Container, Containers, Image
from sparkwright.domain.facts import Docker, DockerTrouble, Unknown
from sparkwright.domain.known_keys import PREFIXES
from sparkwright.facts.fact import Fact, Plain, first_line, not_understood, parsed_json, sections
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)
_GPU_BY_CDI = "nvidia.com/gpu"
_SNAP_ROOT = "/var/snap/"
_SYS_RESOURCE = 24
_CAPS = re.compile(r"^CapEff:\s*([0-9a-f]{1,16})$", re.MULTILINE)
_LOCKED = re.compile(r"^Max locked memory\s+\S+\s+(\S+)", re.MULTILINE)
_USER = re.compile(r"(?<=://)[^/@]*@")
Row = dict[str, object]
_WHOLE_MACHINE = re.compile(r"^\s*0\s+0\s+4294967295\s*$", re.MULTILINE)
_MOST = 200
_VERSION = re.compile(r"version ([0-9]+(?:\.[0-9]+)+)", re.ASCII)
_SHOWN = 6
_WORDS = 2000
_MODEL_OPTIONS = ("serve", "--model", "--model-path", "-m", "--hf-repo", "-hf")
_MODEL = re.compile(r"[A-Za-z0-9/._][A-Za-z0-9/._:@-]{1,200}", re.ASCII)
_PROJECT = re.compile(r"[a-z0-9][a-z0-9_-]{0,100}", re.ASCII)
_KEY = re.compile(PREFIXES)


def parse(done: Completed) -> Docker | Unknown:
    """Docker with a version, or with trouble and Docker's message about it."""
    parts = sections(done.stdout)
    if "client" not in parts:
        return not_understood(done, "docker")
    if parts["client"] == "absent":
        return Docker("", trouble=DockerTrouble.NOT_INSTALLED)
    found = parsed_json(parts.get("info", ""))
    info = found if isinstance(found, dict) else {}
    version = _text(info, "ServerVersion")
    if not version:
        # A socket that is there and that this user may not write to is a matter of rights; all else is no daemon.
        forbidden = parts.get("socket", "") == "not writable"
        trouble = DockerTrouble.NO_RIGHTS if forbidden else DockerTrouble.NOT_RUNNING
        return Docker("", trouble=trouble, said=_said(info, done))
    # The daemon reads CDI specs and one of them offers NVIDIA GPUs (28.3 lists the devices itself).
    devices = [str(entry.get("ID", "")) for entry in _list(info.get("DiscoveredDevices")) if isinstance(entry, dict)]
    value = info.get("Runtimes")
    return Docker(
        version=version,
        runtimes=tuple(sorted(list(value) if isinstance(value, dict) else [])),
        cdi=any(name.startswith(_GPU_BY_CDI) for name in devices)
        or (bool(info.get("CDISpecDirs")) and bool(parts.get("cdi"))),
        root=_text(info, "DockerRootDir"),
        snap=_text(info, "DockerRootDir").startswith(_SNAP_ROOT),
        storage=_text(info, "Driver"),
        can_raise_memlock=_can_raise_memlock(parts.get("daemon", "")),
        log_driver=_text(info, "LoggingDriver"),
        proxy=_USER.sub("", _text(info, "HTTPProxy") or _text(info, "HTTPSProxy")),
        no_proxy=_text(info, "NoProxy"),
        rootless=any(str(option).startswith("name=rootless") for option in _list(info.get("SecurityOptions"))),
    )


def _can_raise_memlock(text: str) -> bool | Unknown:
    """True if dockerd may give a container more locked memory than it has itself.

    The kernel asks for CAP_SYS_RESOURCE in the machine's own user namespace: a rootless daemon has it in another.
    """
    caps = _CAPS.search(text)
    limit = _LOCKED.search(text)
    if limit and limit[1] == "unlimited":
        return True
    if not caps or not limit:
        return Unknown(text[:200], "dockerd's /proc entry could not be read")
    return bool(int(caps[1], 16) >> _SYS_RESOURCE & 1) and bool(_WHOLE_MACHINE.search(text))


def _said(info: Row, done: Completed) -> str:
    errors = [str(error) for error in _list(info.get("ServerErrors"))]
    if done.stderr.strip():
        return first_line(done)
    return errors[0][:200] if errors else ""


def parse_containers(done: Completed) -> Containers | Unknown:
    """Parses containers and images; none without Docker, or without the right to ask it (`parse` has the reason)."""
    parts = sections(done.stdout)
    if "client" not in parts:
        return not_understood(done, "docker")
    version = _VERSION.search(parts.get("toolkit", ""))
    inside = dict(line.split(" ", 1) for line in parts.get("processes", "").splitlines() if " " in line)
    return Containers(
        containers=tuple(_container(row, inside) for row in _rows(parts.get("containers", ""))),
        images=tuple(_image(row) for row in _rows(parts.get("images", ""))),
        toolkit=version[1] if version else "",
        daemon=tuple(line.strip() for line in parts.get("daemon", "").splitlines()),
    )


def _rows(text: str) -> list[Row]:
    return [row for row in map(parsed_json, text.splitlines()) if isinstance(row, dict)]


def _container(row: Row, inside: Mapping[str, str]) -> Container:
    """The container of a row. inside: short id of a container -> the command lines of its processes."""
    asked = [entry for entry in _list(row.get("devices")) if isinstance(entry, dict)]
    # The first words up to the first option: an option's value may be a key.
    words = [_text(row, "path"), *map(str, _list(row.get("args")))]
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
        model=_model(words) or _model(inside.get(_text(row, "id")[:12], "").split()),
        project=_text(row, "project") if _PROJECT.fullmatch(_text(row, "project")) else "",
    )


def _model(words: Sequence[str]) -> str:
    """The model that a command line names: behind `serve`, `--model` and the like; never another option's value."""
    parts = " ".join(words).replace("=", " ").split()[:_WORDS]
    for option, value in pairwise(parts):
        if option in _MODEL_OPTIONS and _MODEL.fullmatch(value) and not _KEY.match(value):
            return value
    return ""


def _image(row: Row) -> Image:
    named = tuple(tag for tag in _list(row.get("tags")) if isinstance(tag, str) and Plain.IMAGE.fits(tag))
    return Image(Plain.IMAGE_ID.only(_text(row, "id")), _text(row, "arch"), named)


def _text(row: Row, name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


# Sections `client` (present, absent), `containers` and `images` (a JSON object a line), `daemon` (lines of daemon.json
# about the logs' size and NVIDIA's runtime), `toolkit` (nvidia-ctk's version).
CONTAINERS: Fact[Containers] = Fact(script(_sh("containers"), str(_MOST), timeout=15.0), parse_containers)
# Sections `client` (present, absent), `info` (JSON), `cdi` (spec files with GPUs), `daemon` (what dockerd may do:
# capabilities, limit of locked memory, user namespace), and without an answer `socket` (absent, writable, not writable,
# remote).
DOCKER: Fact[Docker] = Fact(script(_sh("info"), timeout=15.0), parse)

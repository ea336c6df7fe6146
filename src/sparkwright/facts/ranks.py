"""Ranks of ours on a node: containers by their labels, process groups by their folders."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sparkwright.domain.cluster import Node
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.deployment import is_deployment_name
from sparkwright.domain.facts import RankStatus, Unknown
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.probed import LaunchCommand
from sparkwright.facts.fact import Fact, Plain, not_understood
from sparkwright.remote import docker, process
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__, LABEL=docker.LABEL)
_SECRET = re.compile(r"(?i)(^--?[\w.-]*(?:api-?key|token|password|secret)s?)(=.*)?$")
_MASK = "***"
_VARIABLE = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_BEFORE, _BEFORE_OLD = 3, 6  # sh FOLDER/leader.sh FOLDER; sh -c TEXT rank FOLDER PRINTER


def ranks_fact(node: Node) -> Fact[tuple[RankStatus, ...]]:
    return Fact(command(node.paths.state), lambda done: parse(done, node.name))


def command(state: str) -> Command:
    return script(process.LIST + _sh("containers"), state)


def parse(done: Completed, node: str) -> tuple[RankStatus, ...] | Unknown:
    """Ranks sorted by deployment and rank; Unknown when the listing itself failed."""
    if not done.ok and not done.stdout:
        return Unknown(done.stderr.strip()[:200], f"exit {done.exit_code}")
    found = [_rank(line.split("\t"), node) for line in done.stdout.splitlines() if "\t" in line]
    if "blind" in done.stdout.splitlines() and not any(found):
        return Unknown("docker ps failed", "Docker could not be asked which containers are ours")
    return tuple(sorted((r for r in found if r), key=lambda r: (r.deployment, r.rank)))


def docker_away(done: Completed) -> str:
    """The reason why this node's containers are unknown; '' if they were listed (or there is no Docker at all)."""
    said = set(done.stdout.splitlines())
    if said.isdisjoint(("blind", "absent")):
        return ""
    return "Docker is not running" if "stopped" in said else "Docker does not answer"


def _rank(fields: list[str], node: str) -> RankStatus | None:
    try:
        if fields[0] == "container":
            return _container(read_json("\t".join(fields[1:])), node)
        return _process(fields, node) if fields[0] == "rank" else None
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return None


def _container(found: Mapping[str, Any], node: str) -> RankStatus:
    state = found["State"]
    labels = {k.removeprefix(docker.LABEL): v for k, v in found["Config"]["Labels"].items()}
    running = state["Status"] in ("running", "paused", "restarting")
    # OOMKilled is a fact of the cgroup; exit code 137 alone also means a plain SIGKILL.
    return _status(
        labels,
        node=node,
        runtime="docker",
        state="running" if running else "created" if state["Status"] == "created" else "exited",
        handle=found["Name"].lstrip("/"),
        started=state.get("StartedAt", ""),
        exit_code=None if running else state["ExitCode"],
        oom_killed=bool(state.get("OOMKilled")),
    )


def _process(fields: list[str], node: str) -> RankStatus:
    _, directory, state, started, labels = fields[0], fields[1], fields[2], fields[3], "\t".join(fields[4:])
    word, _, code = state.partition(" ")
    exit_code = int(code) if code.isdigit() else None
    return _status(
        read_json(labels),
        node=node,
        runtime="process",
        state=word,
        handle=directory,
        started=started,
        exit_code=exit_code,
    )


def _status(labels: Mapping[str, str], **rest: Any) -> RankStatus:
    """Raises ValueError for names that are none of ours: they become paths and words of commands."""
    handle = Plain.FOLDER if rest["runtime"] == "process" else Plain.NAME
    if not (is_deployment_name(labels["deployment"]) and handle.fits(rest["handle"])):
        raise ValueError("not ours")
    return RankStatus(
        deployment=labels["deployment"],
        rank=int(labels["rank"]),
        recipe=labels.get("recipe", ""),
        recipe_hash=labels.get("recipe-hash", ""),
        spec_hash=labels.get("spec-hash", ""),
        engine=labels.get("engine", ""),
        world=int(labels.get("world", "1")),
        port=int(labels.get("port", "0")),
        bind=Plain.BIND.only(labels.get("bind", "")),
        served_name=labels.get("served-name", ""),
        key_env=Plain.NAME.only(labels.get("key-env", "")),
        simulated=labels.get("simulated") == "true",
        forced=bool(labels.get("forced")),
        replica_of=found if is_deployment_name(found := labels.get("replica-of", "")) else "",
        **rest,
    )


def of_container(name: str) -> Command:
    return script(_sh("container"), name)


def of_process(directory: str) -> Command:
    """A word a line."""
    return script(_sh("process"), directory)


def parse_container(done: Completed) -> LaunchCommand | Unknown:
    try:
        entry, words, image, *digests = [read_json(line) for line in done.stdout.splitlines() if line.strip()]
        named = [str(one) for one in (digests[0] if digests else None) or ()]
        return LaunchCommand(masked([*(entry or ()), *(words or ())]), named[0] if named else str(image))
    except (ValueError, TypeError):
        return not_understood(done, "docker inspect")


def parse_process(done: Completed) -> LaunchCommand | Unknown:
    words = done.stdout.removesuffix("\n").split("\n")
    words = words[_BEFORE if words[1:2] != ["-c"] else _BEFORE_OLD :]
    if words[:1] == ["env"]:
        words = words[1:]
        while words and _VARIABLE.fullmatch(words[0]):
            words = words[1:]
    return LaunchCommand(masked(words)) if words else not_understood(done, "/proc/PID/cmdline")


def masked(words: Sequence[str]) -> tuple[str, ...]:
    """Values of options with the name of a secret are not kept, `--hf-token X` and `--api-key=X` alike."""
    kept, hide = [], False
    for word in words:
        found = _SECRET.match(word)
        kept.append(f"{found[1]}={_MASK}" if found and found[2] else _MASK if hide else word)
        hide = bool(found and not found[2])
    return tuple(kept)

"""Processes of ours on a node that keep weights in GPU memory for ranks: containers by a label, others by folders."""

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.deployment import is_deployment_name
from sparkwright.domain.facts import KeeperStatus
from sparkwright.domain.foreign_json import read_json
from sparkwright.facts.fact import Plain
from sparkwright.remote import docker, process
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__, LABEL=docker.LABEL)


def command(state: str) -> Command:
    return script(process.FUNCTIONS + _sh("keepers"), state)


def parse(done: Completed, node: str) -> tuple[KeeperStatus, ...]:
    """Lines that are none of ours are left out: names become paths and words of commands."""
    found = (_keeper(line.split("\t", 3), node) for line in done.stdout.splitlines())
    return tuple(one for one in found if one)


def _keeper(fields: list[str], node: str) -> KeeperStatus | None:
    try:
        runtime, handle, state, text = fields
        labels = read_json(text)
        if runtime == "docker":
            labels = {name.removeprefix(docker.LABEL): value for name, value in labels.items()}
        form = Plain.FOLDER if runtime == "process" else Plain.NAME
        if not (is_deployment_name(labels["keeper"]) and form.fits(handle)):
            return None
        rank, mark = int(labels["rank"]), str(labels.get("keeper-hash", ""))
        return KeeperStatus(labels["keeper"], rank, node, runtime, handle, state == "running", mark)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None

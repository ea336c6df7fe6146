"""Variables that reach processes on a node, its NCCL libraries, and files that should not be open to others."""

import re

from sparkwright.domain.command import Completed
from sparkwright.domain.fabric_facts import Setting, Settings
from sparkwright.domain.facts import Unknown
from sparkwright.facts.fact import Fact, assignments, not_understood, sections
from sparkwright.remote import settings

_USER = re.compile(r"(?<=://)[^/@\s]*@")
_NCCL = re.compile(r"/\S*/libnccl\.so\.[0-9.]+", re.ASCII)


def parse(done: Completed) -> Settings | Unknown:
    parts = sections(done.stdout)
    if "nccl" not in parts or "ssh" not in parts:
        return not_understood(done, "sh")
    mode, _, token = parts.get("token", "").partition(" ")
    return Settings(
        communication=_set(parts, " communication"),
        proxies=_set(parts, " proxies"),
        nccl=tuple(line for line in parts["nccl"].splitlines() if _NCCL.fullmatch(line)),
        token_file=token,
        token_mode=mode if token and re.fullmatch(r"[0-7]{3,4}", mode) else "",
        lax_ssh=tuple(line for line in parts["ssh"].splitlines() if line.startswith("/")),
    )


def _set(parts: dict[str, str], kind: str) -> tuple[Setting, ...]:
    """What stands in the sections of that kind; a user and password in an address are dropped here too."""
    found = []
    for name, text in parts.items():
        if name.endswith(kind):
            where = name.removesuffix(kind)
            found += [Setting(where, n.removeprefix("export "), _USER.sub("", v)) for n, v in assignments(text)]
    return tuple(found)


SETTINGS: Fact[Settings] = Fact(settings.settings(), parse)

"""Variables of processes, NCCL libraries, files that should not be open to others, and when software was installed."""

import re

from sparkwright.domain.command import Completed
from sparkwright.domain.fabric_facts import EnvironmentSetting, Settings
from sparkwright.domain.facts import Unknown
from sparkwright.domain.host_facts import Times
from sparkwright.facts.fact import Fact, assignments, decimal, found_or, not_understood, sections
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)
_USER = re.compile(r"(?<=://)[^/@\s]*@")
_NCCL = re.compile(r"/\S*/libnccl\.so\.[0-9.]+", re.ASCII)
_YES_NO = {"yes": True, "no": False}


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


def _set(parts: dict[str, str], kind: str) -> tuple[EnvironmentSetting, ...]:
    """The content of the sections of that kind; a user and password in an address are dropped here too."""
    found = ((name.removesuffix(kind), text) for name, text in parts.items() if name.endswith(kind))
    return tuple(
        EnvironmentSetting(where, name.removeprefix("export "), _USER.sub("", value))
        for where, text in found
        for name, value in assignments(text)
    )


def parse_times(done: Completed) -> Times | Unknown:
    parts = sections(done.stdout)
    if "now" not in parts:
        return not_understood(done, "date")
    sync = dict(assignments(parts.get("sync", "")))
    return Times(
        _number(parts["now"], "date"),
        _number(parts.get("uptime", "").partition(" ")[0], "/proc/uptime"),
        _yes_no(sync, "NTPSynchronized"),
        _yes_no(sync, "NTP"),
        _unclean(parts.get("boots", "")),
    )


def _number(text: str, source: str) -> float | Unknown:
    return found_or(decimal(text), text[:80], f"{source} gave no number")


def _yes_no(sync: dict[str, str], name: str) -> bool | Unknown:
    said = sync.get(name, "")
    return found_or(_YES_NO.get(said), said, f"timedatectl does not report {name}")


def _unclean(text: str) -> bool | Unknown:
    """`last -x` is newest first: the boot that runs, and before it a shutdown, or the boot that ended without one."""
    words = [line.split()[0] for line in text.splitlines() if line.startswith(("reboot ", "shutdown "))]
    if len(words) < 2 or words[0] != "reboot":
        return Unknown(text[:80], "last does not list the boot before this one")
    return words[1] == "reboot"


# Sections `now` (seconds since the epoch), `uptime`, `sync` (timedatectl), `boots` (last).
TIMES: Fact[Times] = Fact(script(_sh("show", "times"), timeout=10.0), parse_times)
# Sections `WHERE communication` and `WHERE proxies` (NAME=value), `nccl` (library files), `token` (MODE FILE), `ssh`
# (files that turn host key checking off).
SETTINGS: Fact[Settings] = Fact(script(_sh("settings"), timeout=10.0), parse)

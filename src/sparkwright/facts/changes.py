"""The record of `check --fix` on a node, written and read; and the rights that the ssh user has there."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from sparkwright.domain.command import Command, Completed, Secret
from sparkwright.domain.finding import AppliedFix, Fix, Rights
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.unknown import Unknown
from sparkwright.facts.fact import Fact, first_line, not_understood
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)

NO_SUDO = 127

# sudo takes the first line of stdin. -k: also where it remembers a password, or the line would go to the command.
_SUDO = r"""LC_ALL=C exec sudo -k -S -p '' """
_WITH_PASSWORD = (
    _SUDO
    + r"""${SPARKWRIGHT_SYSROOT:+env "SPARKWRIGHT_SYSROOT=$SPARKWRIGHT_SYSROOT"} """
    + r"""sh -c 'exec "$@" </dev/null' sparkwright "$@" """
)
VERSION = 1
# What `init` records its steps by, in their order; all others are codes of findings. `wake` is in the cluster file.
INIT = ("ssh", "peers", "fabric", "docker", "swap", "sysctl", "clock", "watchdog", "wake")
# sudo, and sudo-rs.
_ASKS = re.compile("password is required|authentication is required")
_REFUSED = re.compile("incorrect password|incorrect authentication|try again")


def record_path(state: str) -> str:
    """The path of the record; state: Node.paths.state."""
    return f"{state}/fixes.json"


def rights(password: Secret | None = None) -> Command:
    """Prints `root` where the ssh user is root; else exit 0 when sudo asks for no password, 127 when there is none.

    password: one attempt with it.
    """
    if password:
        return script(f"{_SUDO} true", timeout=20.0, stdin=_line(password))
    return script(_sh("rights"), timeout=10.0)


def as_root(command: Command, password: Secret | None = None) -> Command:
    """The same without stdin, by sudo where the ssh user is not root. password: what sudo wants, if anything."""
    if password:
        argv = ("sh", "-c", _WITH_PASSWORD, "sparkwright", *command.argv)
        return replace(command, argv=argv, stdin=_line(password))
    return replace(command, argv=("sh", "-c", _sh("as_root"), "sparkwright", *command.argv))


def _line(password: Secret) -> bytes:
    return f"{password.reveal()}\n".encode()


def recorded(state: str) -> Fact[tuple[AppliedFix, ...]]:
    """The changes in the order in which they were made. state: Node.paths.state."""
    # JSON; nothing where there is no record
    return Fact(script('f="$(x "$1")"; [ ! -e "$f" ] || exec cat "$f"', record_path(state)), _parse)


def record_text(made: Sequence[AppliedFix]) -> bytes:
    """The text that `recorded` reads."""
    return json.dumps({"version": VERSION, "changes": [asdict(change) for change in made]}, indent=1).encode()


def _parse(done: Completed) -> tuple[AppliedFix, ...] | Unknown:
    if not done.ok:
        return not_understood(done, "cat")
    if not done.stdout.strip():
        return ()
    try:
        data = read_json(done.stdout)
        if data["version"] != VERSION:
            return Unknown(f"version {data['version']}", "another version of sparkwright wrote it")
        return tuple(_change(row) for row in data["changes"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return Unknown(first_line(done), f"not what sparkwright writes ({error})")


def _change(row: Any) -> AppliedFix:
    given = dict(row["fix"])
    do, undo = (tuple(_command(one) for one in given[name]) for name in ("do", "undo"))
    says, sets = str(given["says"]), str(given["sets"])
    fix = Fix(str(given["node"]), says, do, undo, _command(given["look"]), sets, bool(given["root"]))
    circumstances = str(row["before"]), float(row["at"]), str(row["who"]), bool(row["done"])
    return AppliedFix(str(row["code"]), fix, *circumstances)


def _command(row: Any) -> Command:
    argv = tuple(str(word) for word in row["argv"])
    return Command(argv, timeout=float(row["timeout"]), changes=str(row["changes"]), typed=str(row["typed"]))


def _rights(done: Completed) -> Rights:
    if done.ok:
        return Rights(root=done.stdout.strip() == "root")
    if done.exit_code == NO_SUDO:
        return Rights(why="sudo is not installed there")
    if _ASKS.search(done.stderr):
        return Rights(why="sudo wants a password there (--ask-become-pass)", asks=True)
    return Rights(why=f"`sudo -n` failed there: {first_line(done) or f'exit {done.exit_code}'}")


def rights_with(password: Secret) -> Fact[Rights]:
    """The rights with this password: one attempt of sudo."""

    def read(done: Completed) -> Rights:
        if done.ok:
            return Rights(password=password)
        if _REFUSED.search(done.stderr):
            return Rights(why="sudo did not accept the password", asks=True)
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), f"exit {done.exit_code}")
        return Rights(why=f"sudo failed there: {last.strip()[:200]}")

    return Fact(rights(password), read)


RIGHTS: Fact[Rights] = Fact(rights(), _rights)

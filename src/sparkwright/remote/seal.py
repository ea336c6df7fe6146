"""A node's seal: the number and node of the supervisor whose commands it takes. It only rises, and outlives a reboot.

A supervisor that may have a successor sends each command that changes a node under its seal. The node compares before
the command begins. Who raises a seal waits until the commands under the one before have ended there.
"""

import re

from sparkwright.domain.command import Command
from sparkwright.domain.standby import Seal
from sparkwright.domain.values import replace
from sparkwright.remote.host import PRELUDE, script, script_texts

REFUSED = 65
_MARK = "sparkwright seal:"
_sh = script_texts(__name__, MARK=_MARK, REFUSED=str(REFUSED))
_SEAL = re.compile(r"(?:sealed|held) (\d{1,15}) (\S{1,64})", re.ASCII)


def show_seal(state: str, cluster: str) -> Command:
    """Prints `sealed NUMBER NODE`; number 0 without one."""
    return script(_sh("file", "show"), state, cluster, timeout=10.0)


def raise_seal(state: str, cluster: str, seal: Seal) -> Command:
    """Prints `sealed`, `held NUMBER NODE` if another one is in force, or `busy` while a command of before runs."""
    text = _sh("file", "raise")
    return script(text, state, cluster, str(seal.number), seal.node, timeout=10.0, changes=f"seal {seal.number}")


def remove_seals(state: str) -> Command:
    """Takes the node's seals and votes away, for a head that has no standby any more."""
    return script(_sh("remove"), state, changes="remove seals and votes")


def under_seal(command: Command, state: str, cluster: str, seal: Seal) -> Command:
    """The same command, which runs only while the node has this very seal. Exit REFUSED: `refusal` has the reason."""
    text = PRELUDE + _sh("file", "under")
    words = ("sh", "-c", text, "sparkwright", state, cluster, str(seal.number), seal.node)
    return replace(command, argv=(*words, *command.argv))


def refusal(stderr: str) -> str:
    """`behind`, `busy` or `held NUMBER NODE` of a command that was refused; '' for one that began."""
    first = stderr.lstrip().partition("\n")[0]
    return first.removeprefix(_MARK).strip() if first.startswith(_MARK) else ""


def parse_seal(text: str) -> Seal | None:
    """None for an answer that is none. A login that prints something comes before it."""
    found = _SEAL.fullmatch(text.strip().rpartition("\n")[2])
    return Seal(int(found[1]), found[2]) if found else None

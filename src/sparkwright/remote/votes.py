"""A node's vote for the gateway's node: one promise at a time, in a file in /run/lock.

It counts by the time since the node's boot. A node that has no promise on file may have lost one by a reboot: it
promises its vote to nobody for one term.
"""

from sparkwright.domain.command import Command
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)


def ask_vote(place: tuple[str, str], candidate: str, term: float, nonce: str) -> Command:
    """Prints `granted`, or `held NODE`; NODE is `-` while the vote is promised to nobody.

    place: cluster and voter. nonce: another one each time.
    """
    return script(_sh("file", "ask"), _name(place), f"{term:.0f}", candidate, nonce, timeout=10.0)


def look_up(place: tuple[str, str], term: float) -> Command:
    """Prints `free` or `held NODE`."""
    return script(_sh("file", "look"), _name(place), f"{term:.0f}", timeout=10.0)


def release(place: tuple[str, str], term: float, nonce: str) -> Command:
    """The vote is free at once if nothing was granted since the question with this nonce was: a release that comes
    late frees no later promise."""
    return script(_sh("file", "release"), _name(place), f"{term:.0f}", nonce, timeout=10.0)


def _name(place: tuple[str, str]) -> str:
    return f"vote-{place[0]}.{place[1]}"

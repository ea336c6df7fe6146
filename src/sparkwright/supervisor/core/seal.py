"""Numbers of supervisors that follow each other: each has a higher one than all before it.

A number is taken from what most voters have, and most voters have it before anything is done under it. Two majorities
share a voter, so the next one sees it. Two that took the same number meet on that voter, which takes one of them.
"""

from collections.abc import Collection, Mapping

from sparkwright.domain.standby import Seal
from sparkwright.supervisor.core.term import is_majority


def next_seal(seen: Mapping[str, Seal | None], voters: Collection[str], node: str) -> Seal | None:
    """The seal to ask for, which may be the one that this node has already; None if too few voters have answered.

    seen: of each node that was asked, None for one without an answer.
    """
    known = {name: seal for name, seal in seen.items() if seal is not None}
    if not is_majority(known, voters):
        return None
    top = max(seal.number for seal in known.values())
    holders = {seal.node for seal in known.values() if seal.number == top}
    return Seal(top, node) if top and holders == {node} else Seal(top + 1, node)

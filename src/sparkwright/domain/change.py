"""What `check --fix` has changed on a node, as it is recorded there until it is taken back."""

from dataclasses import dataclass

from sparkwright.domain.command import Secret
from sparkwright.domain.finding import Fix


@dataclass(frozen=True, slots=True)
class Change:
    """A fix and its circumstances. code: of the finding. before: what `fix.look` printed before it.

    at: seconds since the epoch. who: `user@host`. done: False from before the change until it is known to hold; one
    that stays so was cut off, and may have been made or not.
    """

    code: str
    fix: Fix
    before: str
    at: float
    who: str
    done: bool = False


@dataclass(frozen=True, slots=True)
class Rights:
    """root: the ssh user is root and needs no sudo. why: why there is no way to root; '' where there is one.

    asks: sudo wants a password. password: the one that sudo has accepted.
    """

    root: bool = False
    why: str = ""
    asks: bool = False
    password: Secret | None = None

"""The findings of checks and the fixes applied: code, severity, evidence, cause, remedy."""

from collections.abc import Collection
from enum import StrEnum

from sparkwright.domain.command import Command, Secret
from sparkwright.domain.values import dataclass


class Severity(StrEnum):
    """The weight of a finding: `block` cannot be overridden, `override` needs --force and a reason."""

    BLOCK = "block"
    OVERRIDE = "override"
    WARN = "warn"
    INFO = "info"

    @property
    def stops(self) -> bool:
        return self in (Severity.BLOCK, Severity.OVERRIDE)


BLOCK, OVERRIDE, WARN, INFO = Severity


@dataclass(frozen=True, slots=True)
class Fix:
    """A repair that `check --fix` may make: small, right on every such node, and undone exactly by `undo`.

    do, undo: run on `node` in order, as root where `root`.
    Command.changes is set: it goes to the node's audit log. Never where sources contradict each other.
    look: prints what it is now, as the ssh user; `sets` once do has run, unlike what somebody
    else has set since.
    """

    node: str
    says: str  # what changes, with the value before and after
    do: tuple[Command, ...]
    undo: tuple[Command, ...]
    look: Command
    sets: str
    root: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect. `subject` is a node, rank, file or recipe; `evidence` the line or figure that proves it."""

    code: str
    severity: Severity
    subject: str
    title: str
    evidence: str = ""
    cause: str = ""
    remedy: str = ""
    fix: Fix | None = None


def prevented(findings: Collection[Finding]) -> str:
    """`1 finding prevents it`, `2 findings prevent it`."""
    return "1 finding prevents it" if len(findings) == 1 else f"{len(findings)} findings prevent it"


@dataclass(frozen=True, slots=True)
class AppliedFix:
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

"""The one tree of exceptions. Expected trouble on nodes is a Finding; these are misuse, lost contact or our own bugs.

    SparkwrightError
      UsageError            exit 2   usage error on the command line
        RecipeError                  a recipe or cluster file that cannot be used
      Refused               exit 1   the plan or the nodes do not allow it (carries findings, and what would be allowed)
      NodeError             exit 3
        Unreachable                  no ssh connection, host key changed, timeout
        CommandFailed                a command on a node that had to work did not
      Busy                  exit 4   somebody else holds the lease
      NotReady              exit 5   the engine did not answer in time, a rank exited, a phase is stuck
      StoreError            exit 2   a file of this machine cannot be read or written
      (anything else)       exit 70  our own bug

A message has: subject, what happened, value against what was expected; `hint`: what to do.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # every command needs this file at its start, and few need those
    from sparkwright.domain.diagnosis import Cause, Explanation
    from sparkwright.domain.finding import Finding
    from sparkwright.domain.verdict import Remedy


class SparkwrightError(Exception):
    exit_code = 70

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(SparkwrightError):
    exit_code = 2


class RecipeError(UsageError):
    """A recipe or cluster file that cannot be used; the message begins with file and line."""


class Refused(SparkwrightError):
    exit_code = 1

    def __init__(
        self, message: str, findings: "Sequence[Finding]" = (), hint: str = "", remedies: "Sequence[Remedy]" = ()
    ) -> None:
        super().__init__(message, hint)
        self.findings, self.remedies = tuple(findings), tuple(remedies)


class NodeError(SparkwrightError):
    exit_code = 3

    def __init__(self, node: str, message: str, hint: str = "") -> None:
        super().__init__(f"{node}: {message}", hint)
        self.node = node


class Unreachable(NodeError):
    """cure: the hint in a few words, for a sentence; the hint itself by default."""

    def __init__(self, node: str, message: str, hint: str = "", cure: str = "") -> None:
        super().__init__(node, message, hint)
        self.cure = cure or hint


_READ_ONLY = "Read-only file system"
_SHELL = re.compile(r":? *\b(?:sh|bash|dash|rm|mkdir|mv|cat|cp|touch|chmod|install)(?:: [0-9]{1,5})?: ")


class CommandFailed(NodeError):
    """A command on a node did not work. Lines of a shell about a read-only file system become a sentence."""

    exit_code = 1

    def __init__(self, node: str, message: str, hint: str = "") -> None:
        if _READ_ONLY in message:
            message = f"{_SHELL.split(message, maxsplit=1)[0].rstrip(': ')}: read-only file system"
            hint = hint or f"`dmesg` on {node} shows why the kernel remounted it"
        super().__init__(node, message, hint)


class Busy(SparkwrightError):
    exit_code = 4


class NotReady(SparkwrightError):
    exit_code = 5

    def __init__(self, message: str, hint: str = "", tail: Sequence[str] = (), logs: str = "") -> None:
        super().__init__(message, hint)
        self.tail = tuple(tail)
        self.logs = logs
        self.causes: tuple[Cause, ...] = ()  # root causes that the ranks' logs show
        self.explanation: Explanation | None = None  # without a cause


class StoreError(SparkwrightError):
    exit_code = 2

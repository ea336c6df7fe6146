"""What a rule found: code, severity, evidence, cause, remedy."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How a finding weighs: `block` cannot be overridden, `override` with --force and a reason."""

    BLOCK = "block"
    OVERRIDE = "override"
    WARN = "warn"
    INFO = "info"

    @property
    def stops(self) -> bool:
        return self in (Severity.BLOCK, Severity.OVERRIDE)


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

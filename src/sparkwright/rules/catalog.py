"""All rules, by family. Plain tuples: nothing registers itself, and the order is the order of equal findings."""

from collections.abc import Iterable

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.rule import Context, Rule

PREFLIGHT: tuple[Rule, ...] = ()
RULES: tuple[Rule, ...] = PREFLIGHT

_ORDER = tuple(Severity)


def check_all(context: Context) -> tuple[Finding, ...]:
    """What every rule finds, worst first; findings of one severity in the order of the catalog."""
    return worst_first(finding for rule in RULES for finding in rule.check(context))


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Block, override, warn, info; equal ones stay as they came, and what is said twice is said once."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: _ORDER.index(finding.severity)))

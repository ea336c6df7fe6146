"""What can be said of a recipe without a cluster, for `recipes validate` and `recipes import`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparkwright.checks import deployment
from sparkwright.checks.catalog import RECIPE
from sparkwright.domain.check import Context
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import Recipe
from sparkwright.engines.catalog import rehearse
from sparkwright.planner.parallelism import advise
from sparkwright.recipes.vocabulary import in_recipe

_CHECKS = (*(check for check in deployment.CHECKS if check.code == "PAR001"), *RECIPE)


@dataclass(frozen=True, slots=True)
class Said:
    """errors: lines that would stop a start; warnings and notes: lines that would not. Each begins with the file."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def softly(self) -> Iterator[str]:
        """What stops nothing, as it is shown."""
        yield from (f"warning: {line}" for line in self.warnings)
        yield from (f"note: {line}" for line in self.notes)


def rehearsed(variants: Sequence[Recipe], source: str) -> Said:
    """What flags, variables, the model's shape and what others found say of a recipe and its profiles, each once."""
    found: dict[Finding, str] = {}
    for recipe in variants:
        alone = Context(Cluster("", (), ""), recipe=recipe, advice=advise(recipe, {}))
        asked = (in_recipe(finding, recipe.engine.name) for finding in rehearse(recipe))
        ruled = (finding for check in _CHECKS for finding in check.findings(alone))
        for finding in (*asked, *ruled):
            found.setdefault(finding, f"@{recipe.profile}" if recipe.profile else "")
    lines: dict[str, list[str]] = {"errors": [], "warnings": [], "notes": []}
    for finding, profile in found.items():
        kind = "errors" if finding.severity.stops else "warnings" if finding.severity is Severity.WARN else "notes"
        lines[kind].append(f"{source}{profile}: {_line(finding)}")
    return Said(**{kind: tuple(told) for kind, told in lines.items()})


def _line(finding: Finding) -> str:
    why = f" ({finding.evidence})" if finding.evidence else ""
    return f"{finding.code} {finding.title}{why}" + (f"; {finding.remedy}" if finding.remedy else "")

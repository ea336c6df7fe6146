"""All rules, by family. Plain tuples: nothing registers itself, and the order is the order of equal findings."""

from collections.abc import Iterable

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.catalog import COMPAT
from sparkwright.rules.door_catalog import GATEWAY
from sparkwright.rules.host_catalog import HOST
from sparkwright.rules.link_catalog import LINK
from sparkwright.rules.preflight import (
    disk001_no_room,
    dock001_no_daemon,
    dock002_no_rights,
    dock003_no_nvidia_runtime,
    dock004_memlock,
    drv001_590,
    drv002_too_old,
    drv003_torn,
    gpu001_none,
    gpu002_foreign_process,
    host001_same_machine_id,
    host002_same_machine,
    mem001_does_not_fit,
    mem002_fraction_too_high,
    mem003_context_too_long,
    model001_incomplete,
    model002_nowhere,
    model003_other_shape,
    model004_unfinished,
    model005_bad_ref,
    model006_damaged_file,
    model007_no_index,
    model008_sums_differ,
    model009_several_indexes,
    model010_bad_config,
    model011_not_understood,
    model012_from_the_hub,
    model013_context_over_model,
    par001_split_impossible,
    port001_taken,
    rank001_other_deployment,
    rec001_refused,
    rec002_documented,
)
from sparkwright.rules.rule import Context, Rule

PREFLIGHT: tuple[Rule, ...] = (
    rec001_refused,
    rec002_documented,
    host001_same_machine_id,
    host002_same_machine,
    drv001_590,
    drv002_too_old,
    drv003_torn,
    gpu001_none,
    gpu002_foreign_process,
    dock001_no_daemon,
    dock002_no_rights,
    dock003_no_nvidia_runtime,
    dock004_memlock,
    model001_incomplete,
    model002_nowhere,
    model003_other_shape,
    model004_unfinished,
    model005_bad_ref,
    model006_damaged_file,
    model007_no_index,
    model008_sums_differ,
    model009_several_indexes,
    model010_bad_config,
    model011_not_understood,
    model012_from_the_hub,
    model013_context_over_model,
    par001_split_impossible,
    disk001_no_room,
    mem001_does_not_fit,
    mem002_fraction_too_high,
    mem003_context_too_long,
    rank001_other_deployment,
    port001_taken,
    *HOST,
    *LINK,
    *GATEWAY,
)
RULES: tuple[Rule, ...] = (*PREFLIGHT, *COMPAT)

_ORDER = tuple(Severity)


def check_all(context: Context) -> tuple[Finding, ...]:
    """What every rule finds, worst first; findings of one severity in the order of the catalog."""
    return worst_first(finding for rule in RULES for finding in rule.check(context))


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Block, override, warn, info; equal ones stay as they came, and what is said twice is said once."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: _ORDER.index(finding.severity)))

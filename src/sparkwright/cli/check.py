"""`sparkwright check` and `facts`."""

import time
from collections.abc import Sequence
from typing import Any

import click

from sparkwright.app.check.checking import CheckReport, check_deeply, check_nodes
from sparkwright.app.check.fix import FixOutcome, Result
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.gather import Gathered, gather
from sparkwright.app.services import Services
from sparkwright.checks.attention import FORMER, attention
from sparkwright.cli import options as shared
from sparkwright.cli.check_fix import (
    FixOptions,
    fix,
    least_severe,
    leave_undone,
    print_lost,
    quiet_lines,
    results_text,
    summary,
    undone,
    wanted_json,
)
from sparkwright.cli.columns import echo_text, findings_text, simulated_mark
from sparkwright.cli.facts_text import facts_text
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.errors import NodeError, UsageError
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Severity
from sparkwright.domain.values import asdict, dataclass, replace
from sparkwright.facts.ranks import ranks_fact
from sparkwright.wiring import earlier_events, keep_events


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """The command line of `check`. only, ignore: codes of findings. seize: of --break-lease."""

    where: ClusterOptions
    fix: bool
    undo: bool
    deep: bool
    yes: bool
    ask_become_pass: bool
    dry_run: bool
    only: tuple[str, ...]
    ignore: tuple[str, ...]
    severity: str
    seize: bool
    as_json: bool


@click.command()
@shared.cluster_options
@click.option("--fix", is_flag=True, help="Apply the safe fixes of findings, after showing them and asking.")
@click.option("--undo", is_flag=True, help="Revert what --fix has changed, the last change first.")
@click.option("--deep", is_flag=True, help="Also measure RDMA bandwidth, and clocks under 10 s of load.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation of --fix or --undo.")
@click.option("--ask-become-pass", is_flag=True, help="Ask once for the sudo password of the nodes (--fix, --undo).")
@click.option("--dry-run", is_flag=True, help="Print what --fix or --undo would change and exit.")
@click.option(
    "--only",
    multiple=True,
    metavar="CODE",
    shell_complete=shared.complete.complete_codes,
    help="Fix or undo only this finding; may be repeated.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="CODE[,CODE]",
    shell_complete=shared.complete.complete_codes,
    help="Count these findings but hide them; may be repeated.",
)
@click.option(
    "--severity",
    type=click.Choice([one.value for one in Severity]),
    default="info",
    show_default=True,
    help="Hide findings below this severity; exit code and JSON do not change.",
)
@shared.lease_option
@shared.json_option
def check(**given: Any) -> None:
    """Check all nodes in parallel: findings with evidence and remedy, worst first.

    Exit status: 0 no finding above info, 1 findings or a failed fix, 3 a node could not be reached. An event since boot
    (a killed program, an Xid) is a finding of the first check that shows it; later checks list it in one line.

    \b
    Examples:
      sparkwright check
      sparkwright check --severity warn
      sparkwright check --ignore MEM009,HOST007
      sparkwright check --fix
      sparkwright check --fix --only MEM009 --yes
      sparkwright check --fix --ask-become-pass
      sparkwright check --undo --dry-run
      sparkwright check --deep --cluster lab.yaml --json
    """
    options = CheckOptions(**given)
    _check_words(options)
    where, least = options.where, Severity(options.severity)
    opened = shared.open_cluster(where)
    opened = replace(opened, ignore=shared.finding_codes((*opened.ignore, *options.ignore)))
    only = tuple(FORMER.get(code.upper(), code.upper()) for code in options.only)
    how = FixOptions(options.yes, options.dry_run, options.as_json, options.seize, only, options.ask_become_pass)
    if options.undo:
        leave_undone(*undone(opened, where, how))
    elif options.fix:
        _fix(opened, where, how, least)
    else:
        _look(opened, options)


def _check_words(options: CheckOptions) -> None:
    """Checks that the options go together. Raises click.UsageError."""
    modes = {"fix": options.fix, "undo": options.undo, "deep": options.deep}
    if len(given := [mode for mode, on in modes.items() if on]) > 1:
        raise click.UsageError(f"--{given[0]} and --{given[1]} are two calls")
    changing = options.fix or options.undo
    if not changing and (options.yes or options.dry_run or options.only or options.ask_become_pass):
        raise click.UsageError("--yes, --dry-run, --only and --ask-become-pass go with --fix or --undo")
    if not changing and not options.deep and options.seize:
        raise click.UsageError("--break-lease goes with --fix, --undo or --deep")


def _attended(cluster: Cluster, checked: CheckReport) -> CheckReport:
    """The check without ignored findings and events of an earlier check; this one's are recorded for the next."""
    seen, now = earlier_events(cluster.name), time.time()
    found = attention(checked.findings, checked.facts, cluster.ignore, seen, now)
    unseen = {key: at for key, at in seen.items() if not any(f" {name} " in key for name in checked.facts)}
    keep_events(cluster.name, {**unseen, **found.events})
    return replace(checked, findings=found.findings, ignored=found.ignored, old=found.old)


def _look(cluster: Cluster, options: CheckOptions) -> None:
    async def use(services: Services) -> CheckReport:
        return await (check_deeply(services, options.seize) if options.deep else check_nodes(services))

    quiet = options.as_json or not options.deep
    checked = _attended(cluster, shared.drive_on(cluster, options.where, use, quiet=quiet))
    if options.as_json:
        shared.print_json(_check_json(cluster, checked))
    else:
        _say(cluster, checked, Severity(options.severity))
    _leave(checked)


def _fix(cluster: Cluster, where: ClusterOptions, how: FixOptions, least: Severity) -> None:
    fixed = fix(cluster, where, how)
    after = _attended(cluster, fixed.after)
    if how.as_json:
        changes = wanted_json(fixed.wanted, fixed.results)
        shared.print_json({"dry_run": how.dry_run, "changes": changes, **_check_json(cluster, after)})
    elif how.dry_run:
        echo_text(simulated_mark(cluster.simulated) + summary(after))
    else:
        told = results_text(fixed.results) or f"{simulated_mark(cluster.simulated)}nothing to change by --fix"
        echo_text(f"{told}\n")
        _say(cluster, after, least, fixed.results)
    _leave(after, any(one.outcome is FixOutcome.FAILED for one in fixed.results))


def _leave(checked: CheckReport, failed: bool = False) -> None:
    """Ends with the exit code that the findings deserve."""
    if checked.lost or failed or any(f.severity is not Severity.INFO for f in checked.findings):
        raise click.exceptions.Exit(3 if checked.lost else 1)


def _check_json(cluster: Cluster, checked: CheckReport) -> dict[str, Any]:
    return {
        "cluster": cluster.name,
        "simulated": cluster.simulated,
        "seconds": round(checked.seconds, 3),
        "findings": [asdict(finding) for finding in checked.findings],
        "ignored": [asdict(finding) for finding in checked.ignored],
        "seen_before": [{"finding": asdict(finding), "first_seen": at} for finding, at in checked.old],
        "unreachable": {error.node: error.message for error in checked.lost},
    }


def _say(cluster: Cluster, checked: CheckReport, least: Severity, results: Sequence[Result] = ()) -> None:
    if told := least_severe(checked.findings, least):
        echo_text(findings_text(told, checked.facts, fixes=True) + "\n")
    for line in quiet_lines(checked):
        echo_text(line)
    print_lost(checked.lost)
    echo_text(simulated_mark(cluster.simulated) + summary(checked, least, results))


@click.command()
@click.argument("node", required=False, default="")
@shared.cluster_options
@shared.json_option
def facts(node: str, where: ClusterOptions, as_json: bool) -> None:
    """Print the facts of all nodes or of one: hardware, drivers, network, Docker, disks, ranks.

    \b
    Examples:
      sparkwright facts
      sparkwright facts spark-2 --json
    """
    opened = shared.open_cluster(where)
    found = shared.drive_on(opened, where, lambda services: _ask(services, node), quiet=True)
    lost = any(isinstance(one, NodeError) for one in found.values())
    nodes = {n: {"error": one.message} if isinstance(one, NodeError) else asdict(one) for n, one in found.items()}
    document = {"cluster": opened.name, "simulated": opened.simulated, "nodes": nodes}
    text = "\n\n".join(_text(simulated_mark(opened.simulated) + name, value) for name, value in found.items())
    shared.answer(as_json, document, text, 3 if lost else 0)


async def _ask(services: Services, node: str) -> Gathered:
    """Facts of one node, '' for all. Raises UsageError for a node that the cluster does not have."""
    known = services.cluster.names
    if node and node not in known:
        raise UsageError(f"cluster {services.cluster.name} has no node {node!r}", f"its nodes: {', '.join(known)}")
    nodes = [one for one in services.cluster.nodes if node in ("", one.name)]
    return await gather(services.hosts, nodes, services.clock, ranks_fact)


def _text(title: str, value: NodeFacts | NodeError) -> str:
    if isinstance(value, NodeError):
        return f"{title}\n  error       {value.message}\n  hint        {value.hint}"
    return facts_text(value, title)

"""The result of `sparkwright plan`: text, JSON, or files of other tools. Loaded after the nodes were asked."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sparkwright.app.copy.stage import staging_text
from sparkwright.app.serve.prepare import PORT_TAKEN, Outcome
from sparkwright.app.serve.running import describe_running
from sparkwright.cli import options as shared
from sparkwright.cli.columns import echo_text, findings_text
from sparkwright.cli.failure import remedy_json
from sparkwright.cli.measured import measured_text
from sparkwright.cli.plan_options import PlanOptions
from sparkwright.cli.plan_outlook import Shown
from sparkwright.cli.text import plan_text
from sparkwright.domain.errors import Refused, UsageError
from sparkwright.domain.facts import Unknown
from sparkwright.domain.finding import Finding, Severity, prevented
from sparkwright.domain.homes import resolved_paths
from sparkwright.domain.ledger import Fit
from sparkwright.domain.plan import Plan, stopping
from sparkwright.domain.replica import replica_name
from sparkwright.domain.values import replace
from sparkwright.emit.catalog import FORMS, emit_groups
from sparkwright.emit.source import DeploymentSource, EmittedFile
from sparkwright.engines.catalog import engine_of

# A hub model of which no node has a snapshot yet; its folder will be called by the commit.
_UNNAMED = "/snapshots/main"
_STATE = "/home/user/state"
PLACEHOLDERS = (
    "no node was asked: replace the folders below /home/user, the addresses 192.168.100.N, the interface enp1s0f0np0",
    "and its RDMA device rocep1s0f0 by those of your nodes (on each: ip -br address; ls /sys/class/infiniband)",
)


def print_plan(outcome: Outcome, options: PlanOptions) -> None:
    plan, state = outcome.plan, outcome.cluster_state
    if options.form:
        print_groups(plan.deployment, [outcome], options)
        return
    staged, running = staging_text(plan, state), describe_running(plan, state)
    if options.as_json:
        measured = {node: asdict(one) for node, one in state.calibrations.items()}
        shared.print_json(plan_json(plan, staged) | {"standing": running, "measured": measured})
    else:
        parts = (
            measured_text(state.calibrations),
            plan_text(plan, staged, Shown(options.why, options.splits, options.commands)),
            running,
        )
        echo_text("\n\n".join(filter(None, parts)))


def print_groups(model: str, outcomes: Sequence[Outcome], options: PlanOptions) -> None:
    """Write the files of one group of nodes or of several, and say what is still to be done there.

    Raises Refused if `up` would refuse one of them.
    """
    for one in outcomes:
        if stops := stopping(without_ports_in_use(one.plan), options.force):
            raise nothing_written(one.plan, stops)
    _print_files(model, [_source(one) for one in outcomes], options)
    told: dict[str, None] = {}
    for one in outcomes:
        plan = without_ports_in_use(one.plan)
        found = [finding for finding in plan.findings if finding.severity is not Severity.INFO]
        told |= dict.fromkeys([*unsettled(plan), *([findings_text(found)] if found else [])])
        told |= dict.fromkeys(still_to_copy(one.plan, staging_text(one.plan, one.cluster_state)))
    for line in told:
        echo_text(line, err=True)


def _print_files(model: str, sources: Sequence[DeploymentSource], options: PlanOptions) -> None:
    """Raises UsageError where the form cannot express the plan."""
    assert options.form
    files = emit_groups(options.form, model, sources) if len(sources) > 1 else FORMS[options.form](sources[0])
    if options.as_json:
        shared.print_json({"files": [asdict(file) for file in files]})
    else:
        deliver(files, options.out)


def unsettled(plan: Plan) -> list[str]:
    """A warning where nobody can say whether the plan fits."""
    found = plan.verdict
    return [f"not known whether it fits: {'; '.join(found.missing)}"] if found and found.fit is Fit.UNKNOWN else []


def without_ports_in_use(plan: Plan) -> Plan:
    """The plan for files that are started later: a port in use now says nothing about then."""
    return replace(plan, findings=tuple(one for one in plan.findings if one.code != PORT_TAKEN))


def still_to_copy(made: Plan, staged: Sequence[str]) -> list[str]:
    """The files that `up` would copy to the nodes; these written files do not."""
    told = [f"to be copied there before the start: {line.partition(';')[0]}" for line in staged]
    if any(_UNNAMED in word for spec in made.specs for word in spec.argv):
        told.append(f"then write the files again: {_UNNAMED} is a folder whose name depends on the weights")
    return told


def nothing_written(made: Plan, stops: Sequence[Finding]) -> Refused:
    """Files of a plan that cannot work would be started by somebody: what stops `up` stops them, too."""
    blocks = any(finding.severity is Severity.BLOCK for finding in stops)
    hint = "" if blocks else "to write them all the same: --force REASON"
    return Refused(f"{made.deployment}: nothing was written: {prevented(stops)}", stops, hint)


def plan_json(made: Plan, staged: Sequence[str]) -> dict[str, Any]:
    """The plan without recipe prose: deployment, ranks with argv and environment, ledgers (bytes), findings."""
    return {
        "deployment": made.deployment,
        "recipe": made.recipe.name,
        "profile": made.recipe.profile,
        "recipe_hash": made.recipe.hash,
        "simulated": made.recipe.model.simulated or made.cluster.simulated,
        "cluster": made.cluster.name,
        "bind": made.bind,
        "port": made.port,
        "served_name": made.served_name,
        "fabric": {node: asdict(choice) for node, choice in made.placement.fabric.items()},
        "ranks": [_rank(spec) for spec in made.specs],
        "memory": [
            asdict(entry)
            | {"left": entry.left, "fits": entry.lack is None, "verdict": entry.fit, "kv_tokens": entry.kv_tokens}
            for entry in made.ledgers
        ],
        "verdict": asdict(made.verdict) | {"verdict": made.verdict.fit} if made.verdict else None,
        "speeds": [asdict(speed) for speed in made.speeds],
        "loaders": [asdict(cost) for cost in made.loaders],
        "published": [asdict(figure) for figure in made.recipe.published],
        "splits": asdict(made.advice) if made.advice else None,  # the first is the recipe's own; seconds (best, worst)
        "staging": list(staged),
        "findings": [asdict(finding) for finding in made.findings],
        "remedies": [remedy_json(remedy) for remedy in made.remedies],
    }


def _rank(spec: Any) -> dict[str, Any]:
    return {
        "rank": spec.rank,
        "node": spec.node,
        "runtime": spec.runtime,
        "image": spec.image,
        "argv": [*(spec.entrypoint or ()), *spec.argv],
        "env": dict(spec.env),
        "secrets": sorted(spec.secrets),
        "files": [{"name": file.name, "secret": file.secret is not None, "text": file.text} for file in spec.files],
        "listens": spec.listens,
    }


def emit_stock(plan: Plan, with_specs: Callable[[Plan, int], Plan], options: PlanOptions, groups: int = 1) -> None:
    """Write the files of a plan for which no node was asked, and say what in them is a placeholder.

    groups: how many groups of nodes serve it, each with nodes of its own.
    """
    if stops := stopping(plan, options.force):
        raise nothing_written(plan, stops)
    stop, sources = engine_of(plan.recipe).stop, []
    for number in range(1, groups + 1):
        own = plan if groups == 1 else replace(plan, deployment=replica_name(plan.deployment, number))
        made = with_specs(own, 1 + (number - 1) * len(plan.placement.nodes))
        sources.append(DeploymentSource(made, stop.signal, stop.grace, dict.fromkeys(made.placement.nodes, _STATE)))
    _print_files(plan.deployment, sources, options)
    for line in (*unsettled(plan), *PLACEHOLDERS):
        echo_text(line, err=True)


def _source(outcome: Outcome) -> DeploymentSource:
    plan, facts = outcome.plan, outcome.cluster_state.facts
    stop = engine_of(plan.recipe).stop
    states = {name: resolved_paths(plan.cluster.node(name), facts[name]).state for name in plan.placement.nodes}
    users = {name: who.user for name in plan.placement.nodes if not isinstance(who := facts[name].identity, Unknown)}
    return DeploymentSource(plan, stop.signal, stop.grace, states, users)


def deliver(files: tuple[EmittedFile, ...], out: str) -> None:
    """Writes the files into the folder `out`, or all to stdout, each under its name; a single one alone, ready for a
    pipe."""
    if out:
        _write(files, Path(out))
    elif len(files) == 1:
        click.echo(files[0].text, nl=False)
    else:
        for file in files:
            click.echo(f"# ==> {file.path}\n{file.text}")


def _write(files: tuple[EmittedFile, ...], folder: Path) -> None:
    for file in files:
        path = folder / file.path
        # A filled-in secrets.env is the user's work: an emit for a new plan must not empty it.
        if file.mode == 0o600 and path.exists():
            click.echo(f"{path} (kept)")
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=file.mode)
            path.write_text(file.text, encoding="utf-8")
            path.chmod(file.mode)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}", hint="give another --out") from None
        click.echo(str(path))

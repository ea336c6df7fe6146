"""Plans, deployments and what their supervisors report, as text."""

import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sparkwright.cli.columns import SIMULATED, aligned, fold_line, simulated_mark
from sparkwright.cli.plan_outlook import (
    Shown,
    advice_text,
    answers_text,
    found_text,
    memory_text,
    more_text,
    outlook_text,
    remedies_text,
)
from sparkwright.domain.deployment import Answer, Deployment
from sparkwright.domain.facts import RankStatus
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.live import DeploymentState, Live, LiveCanary, LiveNode, Supervised, phase_text
from sparkwright.domain.model_replicas import ModelReplicas
from sparkwright.domain.plan import Plan, RankFile, RankSpec
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.units import GIB, MIB, counted, duration, gib
from sparkwright.domain.verdict import LoaderCost
from sparkwright.engines.tables import DEFAULT
from sparkwright.gateway.decide import comes_back, wait_reason

_OF_NODES = ("DISK", "DOCK", "DRV", "GPU", "HOST", "MEM", "NET", "RDMA", "TIME")
_OF_PLANS = ("DISK001", "MEM001", "MEM002", "MEM003")
_SHORT = 16  # lines of a file that are shown; launchers are longer, options are not


def plan_text(plan: Plan, staging: Sequence[str], shown: Shown) -> str:
    """The answer, memory, speeds, what would be copied, findings and what does fit; and what else is to be shown."""
    recipe, why = plan.recipe, shown.why
    splits = advice_text(plan.advice) if plan.advice and shown.splits else ""
    ranks = ranks_text(plan.specs) if plan.specs else "no commands: see the findings"
    title = f"{recipe.label}: {recipe.model.label} on {recipe.engine.label}"
    parts = [
        simulated_mark(recipe.model.simulated or plan.cluster.simulated) + title,
        answers_text(plan),
        _where(plan) if shown.commands else "",
        memory_text(plan.ledgers, why),
        outlook_text(plan, why),
        loaders_text(plan, why),
        splits,
        "\n".join(["staging", *(f"  {line}" for line in staging)]) if staging else "",
        ranks if shown.commands or not plan.specs else "",
        found_text([one for one in plan.findings if not _of_a_node(plan, one)], shown),
        remedies_text(plan.remedies) if plan.remedies else "",
        more_text(shown, plan, bool(plan.specs)),
        _verdict(plan),
    ]
    return "\n\n".join(filter(None, parts))


def loaders_text(plan: Plan, why: bool) -> str:
    """The loader of the weights with its cost in memory and time; with `why` the others of this engine version, too."""
    shown = plan.loaders if why else plan.loaders[:1]
    if not shown or not (why or shown[0].took or shown[0].name != DEFAULT):
        return ""
    return "\n".join(["loader of the weights", *(fold_line(f"  {_loader(plan, cost)}", 6) for cost in shown)])


def _loader(plan: Plan, cost: LoaderCost) -> str:
    least, most = (size / GIB for size in cost.buffers[1:])
    keeps = f"keeps {gib(cost.keeps[0])} while it serves" if any(cost.keeps) else "keeps nothing"
    parts = [f"{cost.name}: {gib(cost.buffers[0])} of buffers ({least:.1f} to {most:.1f}), {keeps}"]
    parts += (
        [f"files in {duration(cost.files.value)} ({duration(cost.files.low)} to {duration(cost.files.high)})"]
        if cost.files.known
        else []
    )
    engine = plan.recipe.engine.label
    if cost.there is None:
        parts.append(f"whether {engine} has it was not read")
    elif not cost.there:
        parts.append(f"{engine} does not have it")
    if cost.took is not None:
        kept = "" if cost.kept is None else f", memory that it took besides weights: {gib(cost.kept)}"
        parts.append(f"here {duration(cost.took)}{kept} ({cost.source})")
    return "; ".join(parts)


def _of_a_node(plan: Plan, finding: Finding) -> bool:
    """True for an info finding about a node, not this plan: `check` shows those."""
    of_nodes = set(finding.subject.split(", ")) <= set(plan.cluster.names) and finding.code.startswith(_OF_NODES)
    return finding.severity is Severity.INFO and of_nodes and finding.code not in _OF_PLANS


def _verdict(plan: Plan) -> str:
    hidden = sum(_of_a_node(plan, finding) for finding in plan.findings)
    known = f"; {hidden} for your information about the nodes: `sparkwright check`" if hidden else ""
    if codes := sorted({one.code for one in plan.ignored}):
        known += f"; {counted(len(plan.ignored), 'finding')} ignored by the cluster file: {', '.join(codes)}"
    blocks = sum(f.severity is Severity.BLOCK for f in plan.findings)
    overrides = sum(f.severity is Severity.OVERRIDE for f in plan.findings)
    stops = [counted(blocks, "blocking finding")] if blocks else []
    stops += [f"{counted(overrides, 'finding')} that --force can override"] if overrides else []
    return (f"Not launchable: {', '.join(stops)}" if stops else "Ready to launch") + known


def _where(plan: Plan) -> str:
    rows = []
    for rank, node in enumerate(plan.placement.nodes):
        choice = plan.placement.fabric.get(node)
        how = f"{choice.address} on {choice.interface}" if choice else "no fabric found"
        hcas = f", HCAs {','.join(choice.hcas)}" if choice and choice.hcas else ""
        rows.append((f"rank {rank}", node, "head" if rank == 0 else "", how + hcas))
    return f"ranks\n{aligned(rows)}"


def ranks_text(specs: Sequence[RankSpec]) -> str:
    """The exact environment and command of every rank; what all ranks share is printed once. Secrets are masked."""
    worlds = [
        [f"{name}={shlex.quote(value)}" for name, value in spec.env.items()] + [f"{name}=***" for name in spec.secrets]
        for spec in specs
    ]
    shared = [entry for entry in worlds[0] if all(entry in world for world in worlds)] if len(specs) > 1 else []
    parts = [f"environment of all {len(specs)} ranks\n{_indented(shared)}"] if shared else []
    parts += [_rank(spec, [e for e in world if e not in shared]) for spec, world in zip(specs, worlds, strict=True)]
    return "\n\n".join(parts)


def _rank(spec: RankSpec, own: Sequence[str]) -> str:
    what = f"container of {spec.image}" if spec.runtime is Runtime.DOCKER else "process"
    files = (line for file in spec.files for line in _file(file))
    mounts = (f"mount {mount.label}" for mount in spec.mounts)
    told = [*own, *mounts, *files, *_wrapped((*(spec.entrypoint or ()), *spec.argv))]
    return f"rank {spec.rank} on {spec.node}: {what}\n{_indented(told)}"


def _file(file: RankFile) -> list[str]:
    """A short one whole, of a launcher only how long it is; a secret is masked."""
    lines = file.text.splitlines()
    if file.secret is not None:
        return [f"file {file.name}: ***"]
    if len(lines) > _SHORT:
        return [f"file {file.name}, {len(lines)} lines"]
    return [f"file {file.name}", *(f"  | {line}" for line in lines)]


def _indented(lines: Iterable[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def _wrapped(words: Sequence[str]) -> list[str]:
    """A command line broken before each option."""
    lines: list[str] = []
    for word in words:
        if not lines or word.startswith("--") or len(lines[-1]) > 100:
            lines.append(shlex.quote(word))
        else:
            lines[-1] += f" {shlex.quote(word)}"
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def answer_text(answer: Answer) -> str:
    made_up = f" {SIMULATED}" if answer.simulated else ""
    times = f"first after {duration(answer.ttft)}, all after {duration(answer.total)}"
    text = fold_line(f"answer{made_up}: {answer.text.strip()!r}", 8)
    return f"{text}\n        ({answer.prompt_tokens} prompt tokens, {answer.completion_tokens} tokens, {times})"


def deployment_text(found: Deployment) -> str:
    """The deployment with the time in its state; a missing supervisor is a problem there."""
    supervised = found.supervised
    live = supervised.current if supervised else None
    since = supervised.lasts if supervised else ""
    lines = [
        f"{simulated_mark(found.simulated)}{found.name}: {phase_text(found.state)}{since}  {found.endpoint}".rstrip()
    ]
    if found.ranks:
        lines.append(aligned([_rank_row(rank) for rank in found.ranks]))
    lines += [fold_line(f"  problem: {problem}", 11) for problem in found.problems]
    if found.answer:
        kind = "simulated" if found.simulated or found.answer.simulated else "real"
        lines.append(f"  answered with a {kind} token in {duration(found.answer.total)}")
    if found.state is DeploymentState.RUNNING:
        lines.append("  its ranks run; whether it serves was not asked")
    if not supervised and any(rank.running for rank in found.ranks):
        alone = "not supervised: nothing restarts it and it has no gateway; `sparkwright up` with its recipe adds both"
        if not found.all_asked:
            alone = "address and supervisor are unknown until every node answers"
        lines.append(fold_line(f"  {alone}", 4))
    if supervised and supervised.second:
        lines.append(f"  second address: {supervised.second}")
    if supervised and live:
        lines += _live(supervised, live)
        kept = f" by {supervised.unit}" if supervised.unit else ", not restarted after a reboot"
        by = f", for {supervised.by}" if supervised.by else ""
        lines.append(f"  supervised on {supervised.node}{kept}{by}")
        if found.program and supervised.program not in ("", found.program):
            there, here = supervised.program[:8], found.program[:8]
            other = f"its program on {supervised.node} is another version ({there}) than here ({here})"
            lines.append(fold_line(f"  {other}: the same `sparkwright up` replaces it, the engine stays", 4))
    return "\n".join(lines)


def model_text(found: ModelReplicas) -> str:
    """The replicas of a model below one line about all of them."""
    count = f"{len(found.serving)} of {len(found.replicas)} replicas serve"
    first = (
        f"{simulated_mark(found.simulated)}{found.name}: {phase_text(found.state)}, {count}  {found.endpoint}".rstrip()
    )
    return "\n".join([first, *(textwrap.indent(deployment_text(one), "  ") for one in found.replicas)])


def model_json(found: ModelReplicas) -> dict[str, Any]:
    """name, state, endpoint, serving (a count) and replicas [names]."""
    names = [one.name for one in found.replicas]
    place = {"state": found.state, "endpoint": found.endpoint}
    return {"name": found.name, **place, "serving": len(found.serving), "replicas": names}


def _rank_row(rank: RankStatus) -> tuple[str, ...]:
    code = "" if rank.exit_code is None else f" ({rank.exit_code})"
    return f"rank {rank.rank}", rank.node, f"{rank.state}{code}", rank.engine, rank.recipe


_STILL = 8 * MIB  # bytes an hour that no one has to read about


def _live(found: Supervised, live: Live) -> Iterator[str]:
    problems = [sentence for _, sentence in live.troubles]
    if live.reason and live.reason not in problems:
        yield fold_line(f"  reason: {live.reason}", 10)
    if awaited := wait_reason(live, found.now):
        usual = f"; a start usually takes {duration(live.usual)}" if live.usual else ""
        yield fold_line(f"  {awaited}{usual}", 10)
    if live.phase is DeploymentState.ON_DEMAND:
        yield fold_line(f"  {comes_back(live, found.now)}", 4)
    elif live.refusing:
        why = "" if live.why in (live.reason, *problems) else f": {live.why}"
        yield fold_line(f"  new requests are refused{why}{_back(found, live)}", 10)
    if live.quiet:
        yield fold_line(f"  {live.quiet}", 4)
    if memory := [row for node in live.nodes if (row := _memory(node))]:
        yield aligned(memory)
    if live.canary:
        yield f"  {_canary(found, live.canary)}"
    yield from _past(found, live)


def _past(found: Supervised, live: Live) -> Iterator[str]:
    for one in live.disk_cache:
        yield f"  KV cache on disk: {one.node}  {gib(one.used)} of {gib(one.size)}, {gib(one.free)} free"
    for tier in live.cache_tiers:
        yield fold_line(f"  {tier.tier} cache of the engine: {tier.text}", 4)
    if live.prefixes:
        yield fold_line(f"  kept prompts: {live.prefixes.text}", 4)
    if live.incidents or live.relaunches:
        yield f"  {_incidents(live)}"
    if live.restarts:
        last = ((one, duration(max(found.now - one.last, 0.0))) for one in live.restarts)
        rows = ", ".join(f"{one.who} {one.count} (last {ago} ago)" for one, ago in last)
        yield fold_line(f"  restarts since up: {rows}", 4)


def _back(found: Supervised, live: Live) -> str:
    left = live.back_at - found.now
    if not live.back_at:
        return ""
    return f"; back in about {duration(left)}" if left > 0 else f"; it should have been back {duration(-left)} ago"


def _memory(node: LiveNode) -> tuple[str, ...] | None:
    if not node.reached:
        return "memory", node.node, "cannot be asked now" if node.at else "not sampled yet"
    if node.available is None:
        return None
    claimed = f"; its engine printed that it needs {gib(node.claimed)}" if node.claimed else ""
    return "memory", node.node, f"{gib(node.available)} available{_trend(node)}{claimed}"


def _trend(node: LiveNode) -> str:
    if node.per_hour is None or abs(node.per_hour) < _STILL:
        return ""
    way = "less" if node.per_hour < 0 else "more"
    left = "" if node.time_left is None else f"; at its floor in {duration(node.time_left)}"
    return f", {gib(abs(node.per_hour))} {way} each hour{left}"


def _canary(found: Supervised, canary: LiveCanary) -> str:
    ago = f"{duration(max(0.0, found.now - canary.at))} ago"
    if canary.seconds is None:
        return f"probe request: no token, asked {ago}: {canary.said}"
    kind = "simulated" if found.live and found.live.simulated else "real"
    return f"probe request: a {kind} token in {duration(canary.seconds)}, {ago}"


def _incidents(live: Live) -> str:
    relaunched = f", {live.relaunches} relaunch{'' if live.relaunches == 1 else 'es'}" if live.relaunches else ""
    if live.incident:
        return f"incident {live.incident} is open{relaunched}: sparkwright incidents show {live.incident}"
    last = f", the last: sparkwright incidents show {live.last_incident}" if live.last_incident else ""
    return f"incidents: {live.incidents}{relaunched}{last}"

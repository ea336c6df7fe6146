"""Findings, plans and deployments as text."""

import shlex
from collections.abc import Iterable, Sequence

import click

from sparkwright.domain.deployment import Answer, Deployment
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.ledger import MemoryLedger
from sparkwright.domain.plan import Plan, RankSpec
from sparkwright.domain.recipe import Expose, Runtime
from sparkwright.domain.units import GIB, duration, gib

SIMULATED = "SIMULATED"
_COLORS = {Severity.BLOCK: "red", Severity.OVERRIDE: "red", Severity.WARN: "yellow", Severity.INFO: "blue"}


def findings_text(findings: Sequence[Finding]) -> str:
    """Worst first as they come: code, subject, title, then evidence, cause and remedy where there are any."""
    return "\n".join(_finding(finding) for finding in findings)


def _finding(finding: Finding) -> str:
    head = click.style(f"{finding.severity.upper():<8} {finding.code}", fg=_COLORS[finding.severity], bold=True)
    lines = [f"{head}  {finding.subject}: {finding.title}"]
    for label, text in (("evidence", finding.evidence), ("cause", finding.cause), ("remedy", finding.remedy)):
        if text:
            lines.append(f"    {label + ':':<9} {text}")
    return "\n".join(lines)


def plan_text(plan: Plan, staging: Iterable[str], why: bool) -> str:
    """The whole plan: where, what fits, what would be staged, the exact commands, the published figures, findings."""
    recipe = plan.recipe
    parts = [_title(plan), _where(plan), "\n".join(ledger_text(entry, why) for entry in plan.ledgers)]
    staged = tuple(staging)
    if staged:
        parts.append("staging\n" + "\n".join(f"  {line}" for line in staged))
    parts.append("\n".join(rank_words(spec) for spec in plan.specs) or "no commands: see the findings")
    if recipe.published:
        rows = [f"  {f.what}: {f.value:g} {f.unit} ({f.conditions}; {f.source})" for f in recipe.published]
        parts.append("published figures (not ours)\n" + "\n".join(rows))
    if plan.findings:
        parts.append(findings_text(plan.findings))
    return "\n\n".join(parts)


def _title(plan: Plan) -> str:
    recipe = plan.recipe
    mark = f"{SIMULATED}  " if recipe.model.simulated or plan.cluster.simulated else ""
    profile = f"@{recipe.profile}" if recipe.profile else ""
    return f"{mark}{recipe.name}{profile}: {recipe.model.label} on {recipe.engine.name} {recipe.engine.version}"


def _where(plan: Plan) -> str:
    lines = []
    for rank, node in enumerate(plan.placement.nodes):
        choice = plan.placement.fabric.get(node)
        how = f"{choice.address} on {choice.interface}" if choice else "no fabric found"
        hcas = f", HCAs {','.join(choice.hcas)}" if choice and choice.hcas else ""
        lines.append(f"  rank {rank}{' (head)' if rank == 0 else ''}  {node}  {how}{hcas}")
    return "ranks\n" + "\n".join(lines)


def ledger_text(ledger: MemoryLedger, why: bool) -> str:
    """One line without `why`: the sums; with it every line and where it comes from."""
    verdict = "fits" if ledger.fits else "DOES NOT FIT"
    head = f"memory {ledger.node}: {gib(ledger.pool.bytes)} pool, {gib(ledger.left)} left, {verdict}"
    if not why:
        return head + "".join(f"\n  {line.bytes / GIB:8.1f} GiB  {line.name}" for line in ledger.lines)
    rows = [f"  {line.bytes / GIB:8.1f} GiB  {line.name:<24} {line.origin}: {line.why}" for line in ledger.lines]
    return "\n".join([head, f"  pool: {ledger.pool.origin}: {ledger.pool.why}", *rows])


def rank_words(spec: RankSpec) -> str:
    """The exact environment and command of a rank, as one could type it. Secrets are masked."""
    env = [f"{name}={shlex.quote(value)}" for name, value in spec.env.items()]
    env += [f"{name}=***" for name in spec.secrets]
    what = f"docker image {spec.image}" if spec.runtime is Runtime.DOCKER else "process"
    lines = [f"rank {spec.rank} on {spec.node}: {what}", *(f"    {e}" for e in env)]
    return "\n".join([*lines, *(f"    {line}" for line in _wrapped((*(spec.entrypoint or ()), *spec.argv)))])


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
    mark = f" {SIMULATED}" if answer.simulated else ""
    speed = (
        f"{answer.completion_tokens} tokens, first after {duration(answer.ttft)}, all after {duration(answer.total)}"
    )
    return f"answer{mark}: {answer.text.strip()!r}\n        ({answer.prompt_tokens} prompt tokens, {speed})"


def reach_text(plan: Plan) -> str:
    """How to use the endpoint from where the user sits."""
    base = f"http://{plan.bind}:{plan.port}/v1"
    head = plan.cluster.node(plan.head)
    if plan.recipe.serving.expose is Expose.ALL:
        return f"endpoint: http://{head.ssh}:{plan.port}/v1 (needs the key in ${plan.recipe.serving.api_key_env})"
    if head.is_local:
        return f"endpoint: {base}"
    return f"endpoint: {base} on {plan.head}; from here: ssh -N -L {plan.port}:{plan.bind}:{plan.port} {head.ssh}"


def deployment_text(found: Deployment) -> str:
    mark = f" {SIMULATED}" if found.simulated else ""
    lines = [f"{found.name}{mark}: {found.state}   {found.endpoint}"]
    for rank in found.ranks:
        code = "" if rank.exit_code is None else f" ({rank.exit_code})"
        lines.append(f"  rank {rank.rank}  {rank.node:<12} {rank.state}{code}  {rank.engine}  {rank.recipe}")
    lines += [f"  problem: {problem}" for problem in found.problems]
    if found.answer:
        lines.append(f"  answered with a real token in {duration(found.answer.total)}")
    return "\n".join(lines)

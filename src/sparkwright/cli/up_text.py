"""The last screen of `up`: what serves, the address, a request to paste, what it can carry, and how long it took."""

import json
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from sparkwright.app.copy.stage import staging_text
from sparkwright.app.serve.gateway import NO_KEY_HERE, GatewayReach
from sparkwright.app.serve.prepare import Outcome
from sparkwright.app.serve.replicas import ReplicasOutcome
from sparkwright.app.serve.running import describe_running
from sparkwright.cli.columns import aligned, findings_text, fold_line, simulated_mark
from sparkwright.cli.plan_outlook import Shown
from sparkwright.cli.text import plan_text
from sparkwright.domain.finding import Severity
from sparkwright.domain.ledger import MemoryLedger
from sparkwright.domain.plan import Plan, stopping
from sparkwright.domain.recipe import Expose, ModelKind
from sparkwright.domain.service import Manager
from sparkwright.domain.units import duration, gib
from sparkwright.gateway.caddy import CONSOLE_PATH

KEPT = {
    Manager.USER: "by this user's systemd, also after a reboot",
    Manager.SYSTEM: "by systemd, also after a reboot",
    Manager.NONE: "without systemd: nothing starts it after a reboot",
}
_TUNNEL_SECONDS = 600
_COLUMN = 14  # where what a line says begins
_SAID = 50  # characters of an answer
_SHORT = 0.1  # seconds that nobody has to read about
_SUM = "total"
_OURS = ("facts", "stage", "remove old ranks", "coherence", "parsers", "supervise", _SUM)


def outcome_text(outcome: Outcome, seconds: float, ssh_config: str = "", verbose: bool = False) -> str:
    """seconds: of the whole command. verbose: also what the engine printed of itself, under its own names."""
    plan = outcome.plan
    if outcome.done == "planned":
        planned = plan_text(plan, staging_text(plan, outcome.cluster_state), Shown(splits=True, commands=True))
        return "\n\n".join(filter(None, (planned, describe_running(plan, outcome.cluster_state, outcome.old))))
    simulated = plan.recipe.model.simulated or plan.cluster.simulated
    done = "serves, but its answers are garbled," if outcome.done == "garbled" else outcome.done
    after = "; the engine was not touched; checked in" if outcome.done == "already serving" else " after"
    parts = [f"{simulated_mark(simulated)}{plan.deployment}: {done}{after} {duration(seconds)}"]
    parts += [fold_line(line, _COLUMN) for line in aligned([row for row in _rows(outcome) if row[1]]).splitlines()]
    if verbose:
        parts += [f"  {name}: {value}" for name, value in outcome.facts.items()]
    parts += _worth_knowing(outcome)
    if outcome.armed and NO_KEY_HERE in outcome.armed.said:
        return "\n".join(parts)  # a request without a key gets 401
    parts += ["", "try it"]
    return "\n".join([*parts, *(f"  {line}" for line in request_lines(plan, _reach(outcome), ssh_config))])


def replicas_text(found: ReplicasOutcome, seconds: float, ssh_config: str = "") -> str:
    """The replicas in one table, then how clients reach all of them; of a dry run each plan."""
    if all(one.done == "planned" for one in found.outcomes):
        return "\n\n".join(f"{one.plan.deployment}\n{outcome_text(one, seconds)}" for one in found.outcomes)
    first, count = found.outcomes[0], len(found.outcomes)
    simulated = first.plan.recipe.model.simulated or first.plan.cluster.simulated
    parts = [f"{simulated_mark(simulated)}{found.name}: {count} replica{'s' * (count > 1)} after {duration(seconds)}"]
    parts += aligned([_replica_row(one) for one in found.outcomes]).splitlines()
    parts += [f"  {name}  taken away" for name in found.removed]
    reach = next((_reach(one) for one in found.outcomes if one.armed and one.armed.reach), None)
    if reach is None:
        return "\n".join([*parts, *(line for one in found.outcomes for line in _worth_knowing(one))])
    parts += [fold_line(line, _COLUMN) for line in aligned([("address", reach.url)]).splitlines()]
    parts += dict.fromkeys(line for one in found.outcomes for line in _worth_knowing(one))
    if any(one.armed and NO_KEY_HERE in one.armed.said for one in found.outcomes):
        return "\n".join(parts)
    return "\n".join([*parts, "", "try it", *(f"  {line}" for line in request_lines(first.plan, reach, ssh_config))])


def groups_text(found: ReplicasOutcome) -> str:
    """One row for each group of nodes: whether the model fits there, what is left, and what would be copied."""
    rows = [("replica", "nodes", "verdict", "memory", "to copy"), *(_group_row(one) for one in found.outcomes)]
    stops = {
        f"{one.plan.deployment}: {finding.code} {finding.title} ({finding.subject})": None
        for one in found.outcomes
        for finding in stopping(one.plan, "")
    }
    parts = [f"{found.name}: {len(found.outcomes)} replicas", aligned(rows), *(fold_line(line, 2) for line in stops)]
    parts += [f"{name} would be taken away" for name in found.removed]
    asked = found.outcomes[0].plan.recipe.asked
    return "\n".join([*parts, "", f"one of them in full: sparkwright plan {asked} --replicas 1"])


def _group_row(one: Outcome) -> tuple[str, ...]:
    plan = one.plan
    verdict = str(plan.verdict.fit) if plan.verdict else "unknown"
    copies = ", ".join(line.partition(":")[0] for line in staging_text(plan, one.cluster_state))
    left = _left([ledger for ledger in plan.ledgers if ledger.pool.bytes]).removesuffix(", as planned")
    nodes = ", ".join(dict.fromkeys(plan.placement.nodes))
    return plan.deployment, nodes, verdict, left, copies or "nothing"


def _replica_row(one: Outcome) -> tuple[str, str, str]:
    supervised = "" if one.armed and one.armed.node else ", not supervised: see below"
    return one.plan.deployment, ", ".join(dict.fromkeys(one.plan.placement.nodes)), f"{one.done}{supervised}"


def _rows(outcome: Outcome) -> Iterator[tuple[str, str]]:
    plan, armed, reach = outcome.plan, outcome.armed, _reach(outcome)
    engine, nodes = plan.recipe.engine, ", ".join(dict.fromkeys(plan.placement.nodes))
    yield "serves", f"{plan.served_name} ({engine.label}) on {nodes}"
    where = f" on {plan.head}" if reach.tunnel else ""
    second = armed.reach.second if armed and armed.reach else ""
    yield "address", f"{reach.url}{where}"
    yield "second", f"{second} (serves when {plan.supervisor_node} is gone)" if second else ""
    yield "console", f"{reach.url.removesuffix('/v1')}{CONSOLE_PATH}/{where}" if armed and armed.reach else ""
    if armed:
        yield "supervised", f"on {armed.node} {KEPT[armed.manager]}" if armed.node else "no: see below"
    yield "capacity", capacity_text(plan, outcome.facts.get("kv_tokens", ""))
    yield "memory", _left([ledger for ledger in plan.ledgers if ledger.pool.bytes])
    # What was done before and after the engine's own phases, and these together.
    took = dict[str, float]()
    for name, seconds in outcome.steps:
        told = name if name in _OURS else "engine start"
        took[told] = took.get(told, 0.0) + (seconds if name != _SUM else 0.0)
    yield "time", ", ".join(f"{name} {duration(seconds)}" for name, seconds in took.items() if seconds >= _SHORT)
    if answer := outcome.answer:
        text = textwrap.shorten(answer.text, _SAID, placeholder=" ...")
        yield "answer", f"{answer.completion_tokens} tokens, the first after {duration(answer.ttft)}: {text!r}"


def capacity_text(plan: Plan, printed: str = "") -> str:
    """Tokens a request may have, requests at once, and the KV cache: as the engine printed it, else as planned."""
    serving, kv = plan.recipe.serving, plan.verdict.kv if plan.verdict else None
    parts = [f"{serving.context:,} tokens a request"] if serving.context else []
    parts += [f"{serving.sequences} requests at once"] if serving.sequences else []
    if printed.isdecimal():
        parts += [f"{int(printed[:15]):,} tokens of KV cache"]
    elif kv and kv.sequences and serving.context:
        parts += [f"{kv.sequences:.1f} of full length planned"]
    return ", ".join(parts)


def _left(ledgers: Sequence[MemoryLedger]) -> str:
    left = [gib(ledger.left) for ledger in ledgers]
    if len(left) > 1 and len(set(left)) == 1:
        return f"{left[0]} left on each node, as planned"
    each = (f"{size} on {ledger.node}" for size, ledger in zip(left, ledgers, strict=True))
    return f"{', '.join(each)} left, as planned" if left else ""


def _worth_knowing(outcome: Outcome) -> Iterator[str]:
    """Warnings of the plan at its start, and faults of its supervision."""
    found = (
        [f for f in outcome.plan.findings if f.severity is Severity.WARN]
        if outcome.done in ("ready", "garbled")
        else []
    )
    armed = [f for f in outcome.armed.findings if f.severity is not Severity.INFO] if outcome.armed else []
    if found or armed:
        yield findings_text([*found, *armed])
    yield from outcome.armed.said if outcome.armed else ()


def _reach(outcome: Outcome) -> GatewayReach:
    return outcome.armed.reach if outcome.armed and outcome.armed.reach else engine_reach(outcome.plan, outcome.called)


def engine_reach(plan: Plan, called: str = "") -> GatewayReach:
    """The engine itself, where no gateway is in front of it. called: the head's address as this machine reaches it."""
    head = plan.cluster.node(plan.head)
    if plan.recipe.serving.expose is Expose.ALL and plan.bind == "0.0.0.0":
        host = called or head.host or "127.0.0.1"
        return GatewayReach(f"http://{f'[{host}]' if ':' in host else host}:{plan.port}/v1")
    return GatewayReach(f"http://{plan.bind}:{plan.port}/v1", "" if head.is_local else head.ssh)


def request_lines(plan: Plan, reach: GatewayReach, ssh_config: str = "") -> list[str]:
    """Commands to paste on this machine: a tunnel where one is needed, then a request of the model's kind."""
    bind, _, port = reach.url.removesuffix("/v1").rpartition("/")[2].rpartition(":")
    url, lines = reach.url, []
    if reach.tunnel:
        config = ["-F", ssh_config] if ssh_config else []
        words = ["ssh", *config, "-f", "-o", "ExitOnForwardFailure=yes", "-L", f"{port}:{bind}:{port}", reach.tunnel]
        lines.append(f"{shlex.join(words)} sleep {_TUNNEL_SECONDS}")
        url = url.replace(bind, "127.0.0.1", 1)
    route, kind, body = _first_request(plan)
    authority = f" --cacert {_path(reach.authority)}" if reach.authority else ""
    lines += [f"curl{authority} \\", f"  {url}/{route} \\"]
    # Shell text that becomes the key; the key itself is printed nowhere.
    variable = plan.recipe.serving.api_key_env
    if key := f"$(cat {_path(reach.key)})" if reach.key else variable and f"${variable}":
        lines.append(f'  -H "Authorization: Bearer {key}" \\')
    lines += [f"  -H 'Content-Type: {kind}' \\"] if kind else []
    return [*lines, f"  {body}"]


def _first_request(plan: Plan) -> tuple[str, str, str]:
    """Route, type and body of what the model answers."""
    name, kind = plan.served_name, plan.recipe.model.kind
    if kind is ModelKind.TRANSCRIPTION:
        return "audio/transcriptions", "", f"-F {shlex.quote(f'model={name}')} -F file=@speech.wav"
    chat = {"model": name, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 32}
    routes: dict[ModelKind, tuple[str, dict[str, object]]] = {
        ModelKind.CHAT: ("chat/completions", chat),
        ModelKind.EMBEDDING: ("embeddings", {"model": name, "input": "Hello"}),
        ModelKind.RERANK: ("rerank", {"model": name, "query": "Hello", "documents": ["A greeting.", "A farewell."]}),
    }
    route, body = routes[kind]
    return route, "application/json", f"-d {shlex.quote(json.dumps(body))}"


def _path(path: str) -> str:
    """The path with ~ for the home, as a shell expands it."""
    home = f"{Path.home()}/"
    return f"~/{shlex.quote(path.removeprefix(home))}" if path.startswith(home) else shlex.quote(path)

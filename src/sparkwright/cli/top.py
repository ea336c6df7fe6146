"""`sparkwright top`: what a deployment does now, in the terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

import click

from sparkwright.app import queries
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.services import Services
from sparkwright.cli import options as shared
from sparkwright.cli.columns import aligned, simulated_mark
from sparkwright.cli.text import model_json
from sparkwright.cli.watch import Frame, every_option, watch_screen
from sparkwright.domain.deployment import Deployment
from sparkwright.domain.live import DeploymentState, Live, LiveEngine, LiveNode, phase_text
from sparkwright.domain.model_replicas import ModelReplicas, models_of
from sparkwright.domain.units import duration, gib, grouped, percent
from sparkwright.gateway.decide import refusal_text
from sparkwright.report.rates import SPAN, EngineHistory

_UNKNOWN = "unknown"
_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 20
_SERVES = (DeploymentState.READY, DeploymentState.DEGRADED)


@click.command()
@click.argument("deployment", required=False, default="", shell_complete=shared.complete.deployments)
@shared.cluster_options
@every_option
@shared.json_option
def top(deployment: str, where: ClusterOptions, every: float, as_json: bool) -> None:
    """Show speed, queue, memory and GPUs as they change.

    The figures come from the supervisor on the head node: tokens per second, KV cache, memory and its time left.
    Nothing is started on a node. Without a terminal, frame after frame is printed; with --json, one object a line.
    Ctrl-C ends it, with exit status 0.

    \b
    Examples:
      sparkwright top
      sparkwright top deepseek-v4-flash --every 5
    """
    screen = TopScreen(deployment)
    watch_screen(where, screen.look, every, as_json)


@dataclass
class TopScreen:
    """deployment: the one that was asked for, '' for all. histories: of each engine, since this call began."""

    deployment: str
    histories: dict[str, EngineHistory] = field(default_factory=dict)

    async def look(self, services: Services) -> Frame:
        """Raises UsageError for a deployment that no node knows."""
        found, trouble = await queries.status(services, probe=False)
        shown = [one for one in found if self.deployment in ("", one.name, one.replica_of)]
        if self.deployment and not shown and not trouble:
            raise queries.unknown(services, self.deployment, [one.name for one in found])
        rows = ["\n".join(self._rows(one)) for one in shown]
        parts = [*trouble, *map(self._model, models_of(shown)), *rows, *_nodes(shown)]
        document = {"deployments": [self._document(one) for one in shown], "unreachable": list(trouble)}
        document["models"] = [model_json(one) | {"decode_tokens_s": self._decode(one)} for one in models_of(shown)]
        return Frame("\n".join(parts) or "nothing runs", document)

    def _history(self, found: Deployment) -> EngineHistory:
        history = self.histories.setdefault(found.name, EngineHistory())
        if live := _current(found):
            history.add(live.engine)
        return history

    def _model(self, found: ModelReplicas) -> str:
        """All replicas of a model in one line, with their speed together."""
        speed = self._decode(found)
        text = f"{found.name}: {len(found.serving)} of {len(found.replicas)} replicas serve"
        return (
            simulated_mark(found.simulated)
            + text
            + ("" if speed is None else f", decode {grouped(speed)} tokens/s together")
        )

    def _decode(self, found: ModelReplicas) -> float | None:
        """Tokens a second of all replicas that serve; None if that of none is known."""
        known = [rate for one in found.serving if (rate := self.histories[one.name].decode.value) is not None]
        return sum(known) if known else None

    def _document(self, found: Deployment) -> dict[str, object]:
        history, live = self._history(found), _current(found)
        serves = live is not None and live.phase in _SERVES
        rates = {"decode_tokens_s": history.decode.value, "prefill_tokens_s": history.prefill.value}
        shares = {"prefix_hits": history.hits.value, "acceptance": history.accepted.value}
        figures = {name: value if serves else None for name, value in (rates | shares).items()}
        whole = {"name": found.name, "state": str(found.state), "simulated": found.simulated, **figures}
        return whole | {"live": asdict(live) if live else None}

    def _rows(self, found: Deployment) -> Iterator[str]:
        history, live, supervised = self._history(found), _current(found), found.supervised
        since = supervised.lasts if supervised else ""
        yield (
            f"{simulated_mark(found.simulated)}{found.name}: {phase_text(found.state)}{since}  {found.endpoint}"
        ).rstrip()
        if not supervised:
            yield "  not supervised: its figures are unknown; `sparkwright status` asks it for a token"
            return
        if not live:
            yield "  no current report of its supervisor: its figures are unknown; `sparkwright status` asks the nodes"
            return
        if live.refusing:
            yield f"  {refusal_text(live, supervised.now)}"
        yield from (f"  problem: {sentence}" for _, sentence in live.troubles)
        yield from _starting(live)
        if live.phase in _SERVES:
            yield aligned(list(_figures(live, history, supervised.now)))


_HEAD = ("node", "available", "floor in", "GPU", "°C", "W", "MHz", "ranks")


def _nodes(shown: Sequence[Deployment]) -> Iterator[str]:
    """Each once, as any of the supervisors has seen it last; with several deployments ranks have their names."""
    lives = [live for one in shown if (live := _current(one))]
    newest: dict[str, LiveNode] = {}
    for node in (node for live in lives for node in live.nodes):
        newest[node.node] = max(newest.get(node.node, node), node, key=lambda one: (one.reached, one.at))
    if newest:
        yield aligned([_HEAD, *(_node(node, lives) for node in newest.values())])


def _current(found: Deployment) -> Live | None:
    return found.supervised.current if found.supervised else None


def _starting(live: Live) -> Iterator[str]:
    for rank in live.ranks:
        if rank.phase:
            amount = f"  {rank.done:g} of {rank.total:g} {rank.unit}" if rank.done is not None and rank.total else ""
            yield f"  rank {rank.rank} {rank.node}  {rank.phase}{amount}  {rank.text}".rstrip()


def _figures(live: Live, history: EngineHistory, now: float) -> Iterator[tuple[str, ...]]:
    """The figures of a serving deployment; all unknown without its engine's figures."""
    engine = live.engine or LiveEngine(0.0)
    seen = history if live.engine else EngineHistory()
    decode, prefill = seen.decode, seen.prefill
    yield "decode", _number(decode.value, " tok/s"), sparks(decode.points, now), "running", _number(engine.running)
    yield "prefill", _number(prefill.value, " tok/s"), sparks(prefill.points, now), "waiting", _waiting(engine)
    yield "KV cache", _percent(engine.kv_usage), "", "prefix hits", _percent(seen.hits.value)
    if engine.draft_tokens is not None:
        yield "acceptance", _percent(seen.accepted.value), "", "", ""


def _waiting(engine: LiveEngine) -> str:
    """`3, 1 deferred`: by vLLM's reasons, where it gives any and one waits for something else than room."""
    return f"{_number(engine.waiting)}{f', {_number(engine.deferred)} deferred' if engine.deferred else ''}"


def sparks(points: Sequence[tuple[float, float]], now: float) -> str:
    """The last 10 min as blocks, the newest at the right; '' while there is nothing to draw."""
    step, most = SPAN / _WIDTH, max((value for _, value in points), default=0.0)
    if most <= 0:
        return ""
    columns = [[value for at, value in points if k <= (now - at) / step < k + 1] for k in reversed(range(_WIDTH))]
    means = [sum(column) / len(column) if column else None for column in columns]
    return "".join(" " if mean is None else _BLOCKS[min(int(mean / most * 8), 7)] for mean in means)


def _node(node: LiveNode, lives: Sequence[Live]) -> tuple[str, ...]:
    if not node.reached:
        return node.node, "cannot be asked now" if node.at else "not sampled yet", "", "", "", "", "", ""
    left = _UNKNOWN if node.per_hour is None else "-" if node.time_left is None else duration(node.time_left)
    gpu = (node.gpu_temperature, node.gpu_power, node.gpu_clock)
    ranks = ", ".join(
        f"{live.deployment + ' ' if len(lives) > 1 else ''}{rank.rank}{'' if rank.running else ' (ended)'}"
        for live in lives
        for rank in live.ranks
        if rank.node == node.node
    )
    available = _UNKNOWN if node.available is None else gib(node.available)
    busy = _number(node.gpu_busy, " %")
    return node.node, available, left, *(text.replace(_UNKNOWN, "?") for text in (busy, *map(_number, gpu))), ranks


def _number(value: float | None, unit: str = "") -> str:
    return _UNKNOWN if value is None else grouped(value, 1 if value % 1 else 0) + unit


def _percent(part: float | None) -> str:
    return _UNKNOWN if part is None else percent(part)

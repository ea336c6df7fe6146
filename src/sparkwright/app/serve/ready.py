"""The wait from started ranks to a real answer, and the cleanup if none comes."""

import asyncio
import contextlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict

from sparkwright.app import ranks as rank_work
from sparkwright.app.lease import holding, taken_down
from sparkwright.app.ranks import listing
from sparkwright.app.serve.keepers import end_keepers
from sparkwright.app.serve.watch import StartWatch
from sparkwright.app.services import Services, finished, first_error
from sparkwright.domain.deployment import Answer, Phase
from sparkwright.domain.diagnosis import Cause, Explanation
from sparkwright.domain.errors import Busy, NotReady, SparkwrightError
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.plan import Plan
from sparkwright.domain.progress import StepDone, StepStarted
from sparkwright.domain.recipe import ModelKind
from sparkwright.domain.units import duration
from sparkwright.engines.catalog import definition_of, engine_of

QUESTION = "Write one short sentence."
# A model that thinks first may need more than a greeting's worth; any token of it proves that the ranks work together.
ANSWER_TOKENS = 64
# uvicorn says that it is up a moment before it listens.
_TRIES = 9
_ASK_AGAIN_AFTER = 0.25
_PROBE_EVERY = 2.0
# Nothing is served yet, and ranks that hang in NCCL's rendezvous do not hear SIGTERM: the user waits for the cause.
_GRACE = 5.0
_WEB_PAGE = "GET {path} of {name} answers with a web page, which does not show that it serves: a real answer decides"
_ASK_ANYWAY = 5
# Between two clocks, of which one counts whole seconds.
_SLACK = 2.0


async def until_ready(
    services: Services, plan: Plan, facts: Mapping[str, NodeFacts], ours: bool = True
) -> tuple[Answer, StartWatch]:
    """Follows all ranks until the endpoint has answered. Raises NotReady or Unreachable; the ranks are stopped then.

    ours: this call started them. Ranks that somebody else started and whose server is up are left alone: they may
    be busy with a prompt that takes a quarter of an hour (980K tokens: 16.6 minutes). facts: of the nodes.
    """
    watch = StartWatch(services, plan, engine_of(plan.recipe))
    services.sink.report(StepStarted("engine", f"{plan.recipe.engine.label} starts"))
    try:
        answer = await watched(services, plan, watch)
    except SparkwrightError as error:
        since = services.clock.monotonic() - watch.began + _SLACK
        if who := await taken_down(services, plan.head, plan.deployment, since):
            said = f"{plan.deployment} was taken down by {who}, before it was ready"
            raise NotReady(said, "`sparkwright status` shows what runs now") from None
        logs = await finished(_give_up(services, plan, watch, stop=ours or not watch.ready.is_set()))
        if isinstance(error, NotReady):
            error.logs = logs
            if not watch.memory.stopped:
                # In a thread: the lease, and the renewals of what this call replaces, do not wait for it.
                found = await asyncio.to_thread(diagnosed, services, plan, watch, facts)
                error.causes, error.explanation = found
        raise
    services.sink.report(StepDone("engine", services.clock.monotonic() - watch.began))
    if said := _smaller_window(plan, watch.facts):
        services.notice(said, warning=True)
    if watch.not_understood:
        services.notice(f"the logs that were not understood are in {_saved(services, plan, watch)}")
    return answer, watch


def diagnosed(
    services: Services, plan: Plan, watch: StartWatch, facts: Mapping[str, NodeFacts]
) -> tuple[tuple[Cause, ...], Explanation | None]:
    """The root causes that the logs of all ranks show, and the line that explains without one; saved next to them."""
    from sparkwright.app.diagnose.diagnosing import versions_on, year_of  # a thousand patterns: only when a start fails
    from sparkwright.app.diagnose.examine import examine

    recipe = shlex.quote(plan.recipe.asked)
    words = {"deployment": plan.deployment, "recipe": recipe, "head": plan.head, "node": plan.head}
    words |= {"runtime": str(plan.recipe.engine.runtime)}
    words |= {"port": str(plan.port), "model": plan.served_name, "peer": plan.placement.nodes[-1]}
    logs = [(rank.label, [("\n".join(rank.lines) + "\n").encode("utf-8", "replace")]) for rank in watch.ranks]
    found = examine([*logs, *versions_on(facts)], year_of(services), words)
    services.save_evidence(plan.deployment, "diagnosis.json", json.dumps(asdict(found), indent=2))
    return found.causes, found.explanation


def _smaller_window(plan: Plan, facts: Mapping[str, str]) -> str:
    """A warning for an engine of a file that gives a request less than the recipe asks for; '' otherwise.

    TensorFold fits its window to the memory, and says so in one line of its log only.
    """
    told, wanted = facts.get("context", ""), plan.recipe.serving.context
    if definition_of(plan.recipe) is None or not told.isdecimal() or int(told) >= wanted:
        return ""
    return (
        f"{plan.recipe.engine.label} gives a request {int(told):,} tokens at most, and serving.context asks for "
        f"{wanted:,}: it printed this window when it started; fewer sequences or a smaller context may get more"
    )


async def watched(services: Services, plan: Plan, watch: StartWatch) -> Answer:
    """The answer. Raises NotReady when a rank ends or makes no progress before."""
    try:
        async with asyncio.TaskGroup() as group:
            jobs = [group.create_task(watch.follow(rank)) for rank in watch.ranks]
            jobs += [group.create_task(watch.guard()), group.create_task(watch.exits())]
            jobs += [group.create_task(watch.memory.follow(node)) for node in watch.memory.curves]
            jobs.append(group.create_task(_probed(services, plan, watch)))
            await watch.ready.wait()
            watch.answering = True
            watch.phases[Phase.ANSWER] = services.clock.monotonic()
            services.sink.report(StepStarted("answer", "asking for a real completion"))
            answer = await _answered(services, plan, watch.limit(Phase.ANSWER))
            await watch.confirm_head()
            for job in jobs:
                job.cancel()
    except BaseExceptionGroup as group_error:
        raise first_error(group_error) from None
    return answer


async def _probed(services: Services, plan: Plan, watch: StartWatch) -> None:
    """Set `ready` by an answer where no line, or not the line of readiness, may be understood."""
    described = definition_of(plan.recipe)
    health, round_ = described.health if described else "", 0
    while not watch.ready.is_set():
        await services.clock.sleep(_PROBE_EVERY)
        round_ += 1
        if health and watch.may_be_ready:
            page = await health_page(services, plan, health)
            if page is None and round_ % _ASK_ANYWAY:  # the path may be wrong
                continue
            page = page or ""
            if is_web_page(page):
                services.notice(_WEB_PAGE.format(path=health, name=plan.recipe.engine.label), warning=True)
                health = ""
        if watch.may_be_ready:
            with contextlib.suppress(SparkwrightError, TimeoutError):
                async with asyncio.timeout(watch.limit(Phase.ANSWER)):
                    await ask_model(services, plan)
                watch.ready.set()


async def health_page(services: Services, plan: Plan, path: str) -> str | None:
    """The engine's health page; None if it does not answer with 200."""
    address = "127.0.0.1" if plan.bind == "0.0.0.0" else plan.bind
    key = services.secrets.get(plan.recipe.serving.api_key_env)
    try:
        async with services.hosts[plan.head].tunnel(address, plan.port) as url:
            return await services.endpoint.page(url, path, key)
    except SparkwrightError:
        return None


def is_web_page(text: str) -> bool:
    """True for a page for people: many servers answer any path with one and status 200."""
    return text.lstrip()[:20].lower().startswith(("<!doctype", "<html"))


async def _answered(services: Services, plan: Plan, limit: float) -> Answer:
    try:
        async with asyncio.timeout(limit):
            for _ in range(_TRIES - 1):
                try:
                    return await ask_model(services, plan)
                except NotReady:
                    await services.clock.sleep(_ASK_AGAIN_AFTER)
            return await ask_model(services, plan)
    except TimeoutError:
        raise NotReady(
            f"stuck: {plan.deployment}: the server on {plan.head} is up, but has given no complete answer in "
            f"{duration(limit)} (phase answer); /health may well answer 200",
            "read the logs of all ranks; phases.answer.stuck_after in the recipe changes the limit",
        ) from None


async def ask_model(services: Services, plan: Plan) -> Answer:
    """One answer of the model's kind through a tunnel to the head: the same way whatever the endpoint is bound to."""
    address = "127.0.0.1" if plan.bind == "0.0.0.0" else plan.bind
    key = services.secrets.get(plan.recipe.serving.api_key_env)
    async with services.hosts[plan.head].tunnel(address, plan.port) as url:
        if (kind := plan.recipe.model.kind) is not ModelKind.CHAT:
            return await services.endpoint.prove(url, plan.served_name, kind, key)
        return await services.endpoint.ask(url, plan.served_name, QUESTION, ANSWER_TOKENS, key)


async def _give_up(services: Services, plan: Plan, watch: StartWatch, stop: bool) -> str:
    """Keeps every rank's log here, then stops the ranks; containers and log files stay on the nodes until `down`."""
    where = _saved(services, plan, watch)
    for node, samples in watch.memory.curves.items():
        text = "".join(json.dumps(asdict(one)) + "\n" for one in samples)
        if text:
            services.save_evidence(plan.deployment, f"memory-{node}.jsonl", text)
    try:
        if stop:
            await _stop(services, plan)
        else:
            services.notice(f"the ranks of {plan.deployment} were left as they are; they may be busy", warning=True)
    except Busy as busy:
        # Another `up` that saw the same end, or a `down`, decides now what runs.
        services.notice(f"the ranks were left alone: {busy.message}", warning=True)
    except SparkwrightError as error:
        services.notice(f"not every rank could be stopped: {error.message}", warning=True)
    return where


def _saved(services: Services, plan: Plan, watch: StartWatch) -> str:
    """Every rank's log on this machine; the folder."""
    where = ""
    for rank in watch.ranks:
        name = f"rank{rank.spec.rank}-{rank.spec.node}.log"
        where = services.save_evidence(plan.deployment, name, "\n".join(rank.lines) + "\n")
    return where.rpartition("/")[0]


async def _stop(services: Services, plan: Plan) -> None:
    """Stops what runs of the deployment on the nodes that answer. Raises Busy, or the first of what went wrong."""
    nodes = list(dict.fromkeys(plan.placement.nodes))
    lost = (await listing(services, nodes)).lost
    reached = [n for n in nodes if n not in lost]
    async with holding(services, reached, f"stop {plan.deployment}"):
        found = await listing(services, reached)
        # Also those that count as ended: a killed leader may have left its engine.
        await rank_work.stop_all(services, found.of(plan.deployment), _GRACE, remove=False)
        if any(spec.keeper for spec in plan.specs):
            await end_keepers(services, reached, [plan.deployment])
    for error in (lost | found.lost).values():
        raise error

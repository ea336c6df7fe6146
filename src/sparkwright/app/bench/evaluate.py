"""`eval`: probes, instructions and greedy answers asked of an endpoint, judged, and stored as a run."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Any, Protocol

from sparkwright.app.bench.measure import create_run
from sparkwright.app.bench.parsers import play_probe
from sparkwright.app.bench.prompt_corpus import prepare
from sparkwright.app.bench.target import Bench, PreparedBench
from sparkwright.app.services import finished
from sparkwright.domain.errors import NotReady, UsageError
from sparkwright.domain.evaluation import Evaluation, ProbeOutcome, ProbeState
from sparkwright.domain.run import Run
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.domain.workload import Length, LevelPlan, Single, Workload
from sparkwright.engines.catalog import ENGINES
from sparkwright.evals import instructions, same
from sparkwright.evals.catalog import ProbeEntry
from sparkwright.evals.context import lengths
from sparkwright.evals.heard import ProbeAnswer, ProbeRequest, read
from sparkwright.evals.probe import ProbeInputs
from sparkwright.loadgen.prompts import PromptTexts, written

VERSION = 1  # of the probes and instructions: runs of different versions are not compared
_AT_ONCE = 32
_SECONDS, _PER_SECOND = 300.0, 400  # for an answer, and characters of a prompt for a second more
_FILLED = ("long-context", "cached")


class EvaluationScreen(Protocol):
    """The display of an evaluation's progress. Never blocks, never fails."""

    def begins(self, name: str, number: int, of: int) -> None: ...

    def ends(self, outcome: ProbeOutcome) -> None: ...

    def note(self, text: str) -> None: ...


def workload(kind: str, seed: int, title: str) -> Workload:
    return Workload(f"eval-{kind}", title, (), VERSION, seed=seed, repeats=1)


@dataclass(slots=True)
class Sender:
    """Asks one endpoint, so many requests at once; counts them."""

    ready: PreparedBench
    asked: int = 0
    gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def __call__(self, ask: ProbeRequest) -> ProbeAnswer:
        """Never raises: what went wrong is the answer's trouble."""
        target = self.ready.target
        body = json.dumps({"model": self.ready.probed.model, **ask.body})
        async with self.gate:
            self.asked += 1
            try:
                url, seconds = f"{target.root}{ask.path}", _SECONDS + len(body) / _PER_SECOND
                return read(ask, await self.ready.bench.asker.post(url, body, target.key, seconds))
            except NotReady as error:
                return ProbeAnswer(trouble=error.message)

    async def alive(self) -> bool:
        target = self.ready.target
        try:
            return (await self.ready.bench.asker.get(f"{target.root}/v1/models", target.key, 10.0)).status != 0
        except NotReady:
            return False


async def given_of(
    ready: PreparedBench, longest: int, names: Sequence[str], note: Callable[[str], None]
) -> ProbeInputs:
    """The server as probes need it. Raises NotReady when it stops answering."""
    probed, seed = ready.probed, ready.workload.seed
    engine = ENGINES.get(probed.engine)
    given = ProbeInputs(
        seed,
        probed.context,
        longest,
        probed.thinking,
        probed.reasoning,
        probed.ignore_eos,
        choose=engine.traits.choose if engine else None,
    )
    if not set(names) & {*_FILLED} or not lengths(given):
        return given
    most = lengths(given)[-1]
    plan = LevelPlan("longest", Single(Length(most, most), Length(8, 8)))
    made = await prepare(replace(ready, levels=(plan,)), ready.bench.machine.nonce, note)
    return replace(given, filler=lambda tokens, salt: _filler(made, tokens, salt, seed))


def _filler(texts: PromptTexts, tokens: int, salt: int, seed: int) -> str:
    """A negative salt gives a text that no cache has."""
    fresh = texts.salt if salt < 0 else ""
    return written(texts, tokens, Random(f"{seed}/{salt}/{fresh}"))


async def probe_all(
    ready: PreparedBench, entries: Sequence[ProbeEntry], longest: int, watch: EvaluationScreen
) -> AsyncIterator[ProbeOutcome]:
    """Each probe's outcome, in their order. A server that is gone, or gives two probes in a row no answer, ends it."""
    send, seen = Sender(ready), dict[str, ProbeOutcome]()
    names, clock = [entry.name for entry in entries], ready.bench.clock
    given, gone, mute = await given_of(ready, longest, names, watch.note), False, False
    for number, entry in enumerate(entries):
        watch.begins(entry.name, number, len(entries))
        began, asked = clock.monotonic(), send.asked
        lacking = next((name for name in entry.needs if seen[name].state is not ProbeState.PASSED), "")
        if gone:
            outcome = ProbeOutcome(entry.name, ProbeState.SKIPPED, "the server does not answer any more")
        elif lacking:
            outcome = ProbeOutcome(entry.name, ProbeState.SKIPPED, skip_reason(lacking, seen[lacking]))
        else:
            outcome = await play_probe(entry, given, send)
            gone = outcome.state is ProbeState.BROKEN and (mute or not await send.alive())
            mute = outcome.state is ProbeState.BROKEN
        took = clock.monotonic() - began
        seen[entry.name] = outcome = replace(outcome, requests=send.asked - asked, seconds=took)
        yield outcome


def skip_reason(name: str, outcome: ProbeOutcome) -> str:
    """The reason to skip a probe that needs this one; it names the probe that did not pass."""
    return (
        f"needs {name}, which {outcome.detail}"
        if outcome.state is ProbeState.SKIPPED
        else f"needs {name}: {outcome.state}"
    )


def missing_parser(run: Run) -> str:
    """The reason why all tool probes fail at once: the engine was started without a parser; '' if that is not known."""
    conditions, found = run.conditions, run.evaluation
    engine = ENGINES.get(conditions.engine)
    option = engine.traits.tool_option if engine and conditions.flags else ""
    given = {word.partition("=")[0].removeprefix("--").replace("_", "-") for word in conditions.flags}
    outcomes = found.outcomes if found else ()
    failed = any(
        one.name.startswith("tool-") and one.state in (ProbeState.FAILED, ProbeState.UNSUPPORTED) for one in outcomes
    )
    if not option or option in given or not failed:
        return ""
    where = f"recipe {conditions.recipe}" if conditions.recipe else "command line"
    return f"no tool parser in its {where}: without `parsers.tool` (--{option}) no tool call is parsed"


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """The plan of an evaluation: its kind, and the names of its outcomes."""

    kind: str
    names: tuple[str, ...]


async def evaluate(
    ready: PreparedBench,
    plan: EvaluationPlan,
    outcomes: AsyncIterator[ProbeOutcome],
    watch: EvaluationScreen,
) -> Run:
    """The run as it is stored at the end, also of what was judged until Ctrl-C or until the time was up."""
    run, bench = await create_run(ready), ready.bench
    found: list[ProbeOutcome] = []
    state = "stopped"
    try:
        async with asyncio.timeout(ready.workload.deadline):
            async for outcome in outcomes:
                found.append(outcome)
                watch.ends(outcome)
        state = "done"
    except TimeoutError:
        watch.note(f"stopped after {ready.workload.deadline:.0f} s: the rest was not asked")
        missing = plan.names[len(found) :]
        found += [ProbeOutcome(name, ProbeState.SKIPPED, "not asked: the time was up") for name in missing]
    except asyncio.CancelledError:
        watch.note(f"stopped; what was judged is stored: sparkwright runs show {run.id}")
        raise
    finally:
        await finished(_stored(bench, run, Evaluation(plan.kind, tuple(found)), state))
    return await bench.runs.load(run.id)


async def _stored(bench: Bench, run: Run, evaluation: Evaluation, state: str) -> None:
    await bench.runs.add(replace(run, state=state, ended=bench.clock.now(), evaluation=evaluation))


_PROMPTS_AT_ONCE = 8
_NOT_ASKED = "not asked: the time was up"


async def ask_all(
    ready: PreparedBench, asks: Sequence[ProbeRequest], watch: EvaluationScreen
) -> tuple[ProbeAnswer, ...]:
    """The answers in the order asked. What is not there when the time is up is trouble."""
    send = Sender(ready, gate=asyncio.Semaphore(_PROMPTS_AT_ONCE))
    heard = [ProbeAnswer(trouble=_NOT_ASKED)] * len(asks)
    done = 0

    async def one(place: int) -> None:
        nonlocal done
        heard[place] = await send(asks[place])
        done += 1
        if done % 10 == 0 or done == len(asks):
            watch.note(f"{done} of {len(asks)} answers")

    try:
        async with asyncio.timeout(ready.workload.deadline), asyncio.TaskGroup() as group:
            for place in range(len(asks)):
                group.create_task(one(place))
    except TimeoutError:
        watch.note(f"stopped after {ready.workload.deadline:.0f} s: the rest was not asked")
    return tuple(heard)


async def instruct(ready: PreparedBench, count: int, watch: EvaluationScreen) -> Run:
    """`eval instructions`: so many prompts, judged and stored."""
    given = await given_of(ready, 0, (), watch.note)
    prompts = instructions.prompts(given.seed, count)
    asks = [prompt.ask(given) for prompt in prompts]
    heard = await ask_all(ready, asks, watch)
    judged = [instructions.judge_prompt(*one) for one in zip(prompts, asks, heard, strict=True)]
    return await store_evaluation(ready, Evaluation("instructions", instructions.outcomes(judged)))


async def answers(
    ready: PreparedBench,
    count: int,
    watch: EvaluationScreen,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> Evaluation:
    """`eval same`: each prompt greedily, and all of them once more, so that the noise of the server is known."""
    given = await given_of(ready, 0, (), watch.note)
    prompts, send = same.prompts(given.seed, count), Sender(ready)
    served = not (await send(same.greedy_request(given, prompts[0], True, more))).refused
    asks = [same.greedy_request(given, prompt, served, more) for prompt in prompts]
    first = await ask_all(ready, asks, watch)
    again = await ask_all(ready, asks[::-1], watch)
    pairs = zip(prompts, first, again[::-1], strict=True)
    return Evaluation("same", (), tuple(same.greedy(prompt, (one, two)) for prompt, one, two in pairs))


def same_prompts(base: Run, new: Run, allow_simulated: bool) -> None:
    """Raises UsageError for runs that cannot be compared."""
    for run in (base, new):
        if not run.evaluation or not run.evaluation.answers:
            raise UsageError(f"{run.id} has no greedy answers", "sparkwright eval same URL stores some")
    if base.workload.version != new.workload.version:
        versions = f"{base.workload.version} and {new.workload.version}"
        raise UsageError(f"the prompts are of different versions: {versions}", "ask the first side again")
    if base.conditions.simulated != new.conditions.simulated and not allow_simulated:
        raise UsageError("one side is simulated", "--allow-simulated compares them")


async def store_evaluation(ready: PreparedBench, evaluation: Evaluation) -> Run:
    """A whole evaluation as a run."""
    run = await create_run(ready)
    await finished(_stored(ready.bench, run, evaluation, "done"))
    return await ready.bench.runs.load(run.id)

"""`tune`: short benches of settings that the plan lets start, the probes as a gate, what served before at the end.

Each trial is a start by the machinery of `up`: staged, guarded, awaited until a real answer. What served is handed over
by its supervisor once, for all trials, and is started again however the search ends.
"""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, Protocol

from sparkwright.app.bench.benchmark import run_benchmark
from sparkwright.app.bench.deployment_target import deployment
from sparkwright.app.bench.evaluate import EvaluationScreen, probe_all
from sparkwright.app.bench.target import Bench, BenchRequest
from sparkwright.app.lease import holding
from sparkwright.app.serve.launch import start_ranks
from sparkwright.app.serve.load_guard import load_floors
from sparkwright.app.serve.prepare import prepare
from sparkwright.app.serve.ready import until_ready
from sparkwright.app.serve.stop import clean_nodes
from sparkwright.app.serve.swap import Swap
from sparkwright.app.services import Services
from sparkwright.domain.errors import CommandFailed, NotReady, Refused, SparkwrightError
from sparkwright.domain.evaluation import ProbeOutcome as Probed
from sparkwright.domain.evaluation import ProbeState
from sparkwright.domain.finding import prevented
from sparkwright.domain.plan import Plan, stopping
from sparkwright.domain.run import Run
from sparkwright.domain.tuning import START, Point, Trial, Tried, Tuned, scored
from sparkwright.domain.units import duration, gib
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.evals import catalog
from sparkwright.tune import effects, score, search
from sparkwright.tune.candidates import variant
from sparkwright.tune.survey import TuneSurvey

_PROBES = ("follows", "tool-call", "thinking", "length", "batch")
_FAILED = (ProbeState.FAILED, ProbeState.BROKEN)
_SHOWN = 300
_SOONER = 0.9
_COMPARED = 2  # settings that must be measured before one is called the best


class Journal(Protocol):
    """One search, on the disk. Raises UsageError."""

    @property
    def id(self) -> str: ...

    def add(self, trial: Trial) -> None: ...

    def trials(self) -> Sequence[Trial]: ...

    def header(self) -> dict[str, Any]: ...


class Show(Protocol):
    """The display of a search's progress. Never blocks, never fails."""

    def begins(self, rung: int, point: Point, number: int, of: int) -> None: ...

    def ends(self, trial: Trial) -> None: ...


@dataclass(frozen=True, slots=True)
class QuietBench:
    """A silent display of probes and benches that passes notes on: an EvaluationScreen and the bench's Screen."""

    note: Callable[[str], None]

    def begins(self, name: str, number: int, of: int) -> None: ...

    def ends(self, outcome: Probed) -> None: ...

    def level(self, *_: object) -> None: ...

    def row(self, *_: object) -> None: ...

    def lag(self, *_: object) -> None: ...

    def done(self) -> None: ...


@dataclass(slots=True)
class TuneSearch:
    """budget: seconds of trials, those of an earlier call that was killed included. serving: what runs now."""

    services: Services
    bench: Bench
    survey: TuneSurvey
    journal: Journal
    show: Show
    budget: float
    swap: Swap
    trials: list[Trial] = field(default_factory=list)
    note: str = ""
    _plan: Plan | None = None
    _serving: tuple[Point, tuple[tuple[str, Any], ...]] | None = None

    async def all(self) -> None:
        """Runs trials until the last rung is done, or the budget is spent."""
        survey = self.survey
        while (then := search.upcoming(survey.settings, survey.first, self.trials, survey.good)) is not None:
            if not self._affordable():
                return
            await self._one(*then)
        best = search.best_point(survey.settings, self.trials)
        for setting in survey.starts if best is not None else ():
            for value in setting.values:
                more = {} if value is None else {setting.key: value}
                if best is not None and self._affordable() and not self._started(best, str({setting.key: value})):
                    await self._one(START, best, more, str({setting.key: value}))

    def _started(self, point: Point, what: str) -> bool:
        return any(one.rung == START and one.point == point and one.detail == what for one in self.trials)

    def _affordable(self) -> bool:
        spent = sum(one.seconds for one in self.trials)
        likely = max((one.seconds for one in self.trials[-3:]), default=0.0)
        if spent + likely <= self.budget or not self.trials:
            return True
        self.note = f"used the budget of {duration(self.budget)}"
        return False

    async def _one(self, rung: int, point: Point, more: dict[str, Any] | None = None, what: str = "") -> None:
        number = len({one.point for one in self.trials} | {point})
        self.show.begins(rung, point, number, max(number, search.trial_limit(self.survey.settings)))
        began, trial = self.services.clock.monotonic(), Trial(point, rung, Tried.NOT_STARTED)
        try:
            trial = await self._tried(trial, more or {})
        except Refused as error:
            trial = replace(trial, state=Tried.REFUSED, detail=error.message[:_SHOWN])
        except (NotReady, CommandFailed) as error:
            self._serving = None
            causes = getattr(error, "causes", ())
            why = causes[0].title if causes else error.message.partition("\n")[0]
            trial = replace(trial, detail=str(why)[:_SHOWN])
        took = self.services.clock.monotonic() - began
        trial = replace(trial, seconds=took, detail=what or trial.detail)
        self.trials.append(trial)
        self.journal.add(trial)
        self.show.ends(trial)

    async def _tried(self, trial: Trial, more: dict[str, Any]) -> Trial:
        started = await self._start(trial.point, more, fresh=trial.rung == START)
        if trial.rung == START:
            return replace(trial, state=Tried.MEASURED, start=started, scores=(1 / max(started, 1e-3),))
        survey, name = self.survey, self.survey.request.deployment
        asked = score.Short(survey.wanted.goal, survey.request.recipe.serving.context, survey.wanted.users, self._pace)
        work = asked.workload(trial.rung, survey.wanted.seed)
        tags, note = (f"tune-{self.journal.id}",), str(dict(variant(survey.settings, trial.point).keys) or "as it is")
        request = BenchRequest(work, tags=tags, note=note)
        quiet = QuietBench(lambda text: None)
        async with deployment(self.bench, self.services, name, request) as ready:
            failed = await self._gate(trial, lambda names: self._probe(ready, names, quiet))
            if failed and (lost := self._lost(failed)):
                detail = "; ".join(lost)[:_SHOWN]
                return replace(trial, state=Tried.EXCLUDED, detail=detail, start=started, probed=tuple(failed))
            run = await run_benchmark(ready, quiet)
        probed = None if failed is None else tuple(failed)
        return self._judged(replace(trial, start=started, run=run.id, probed=probed), run)

    @property
    def _pace(self) -> float:
        """The score of the recipe's own settings when first measured; the same after --resume."""
        own = next((one for one in self.trials if not any(one.point) and one.rung >= 0 and one.scores), None)
        return fmean(own.scores) if own else 0.0

    def _judged(self, trial: Trial, run: Run) -> Trial:
        found = score.scores(run, self.survey.wanted.goal)
        for ledger in self._plan.ledgers if self._plan and not self.survey.simulated else ():
            floor, least = load_floors(ledger).hard, score.least_memory(run).get(ledger.node)
            if least is not None and least < floor:
                why = f"{ledger.node} had {gib(least)} available, the floor is {gib(floor)}"
                return replace(trial, state=Tried.EXCLUDED, detail=why)
        lost = score.failures(run)
        if not found or lost > len(found):
            return replace(trial, state=Tried.EXCLUDED, detail=f"{lost} requests failed: see the run")
        detail = f"{lost} requests failed" if lost else ""
        return replace(trial, state=Tried.MEASURED, scores=found, detail=detail)

    async def _start(self, point: Point, more: dict[str, Any], fresh: bool) -> float:
        """Seconds to ready; 0 where it serves already. Raises Refused, NotReady, CommandFailed, Busy, Unreachable."""
        wanted = (point, tuple(more.items()))
        if wanted == self._serving and not fresh:
            return 0.0
        recipe = self.survey.recipe(point, more)
        request = replace(self.survey.request, recipe=recipe)
        outcome = await prepare(self.services, request)
        if stops := stopping(outcome.plan, request.force):
            raise Refused(prevented(stops), stops)
        self._plan, self._serving = outcome.plan, None
        began = self.services.clock.monotonic()
        await start_ranks(self.services, request, outcome, seize=False, swap=self.swap)
        await until_ready(self.services, outcome.plan, outcome.cluster_state.facts)
        self._serving = wanted
        return self.services.clock.monotonic() - began

    async def _gate(self, trial: Trial, probe: Callable[[Sequence[str]], Any]) -> dict[str, str] | None:
        """Probes that failed, with their details; None where none were asked: shortly measured, or nothing to compare.

        The recipe's own settings are probed first, and each point once that comes further than the first rung.
        """
        own, asked = self._own(), any(t.point == trial.point and t.probed is not None for t in self.trials)
        if asked or (any(trial.point) and trial.rung == 0) or (own is not None and not self._compared(own)):
            return None
        found: dict[str, str] = await probe(_PROBES)
        return found

    def _own(self) -> Trial | None:
        return next((one for one in self.trials if not any(one.point) and one.probed is not None), None)

    def _compared(self, own: Trial) -> bool:
        return "follows" not in (own.probed or ())

    def _lost(self, failed: dict[str, str]) -> list[str]:
        own = self._own()
        if own is None:
            return []
        return [f"{name}: {detail}" for name, detail in failed.items() if name not in (own.probed or ())]

    async def _probe(self, ready: Any, names: Sequence[str], quiet: QuietBench) -> dict[str, str]:
        watch: EvaluationScreen = quiet
        found = [one async for one in probe_all(ready, catalog.chosen(names), 600, watch)]
        return {one.name: one.detail for one in found if one.state in _FAILED}

    async def restore(self, error: BaseException | None) -> None:
        """Starts the previous deployment again and removes the rest of the trials."""
        if self.swap.old and self.swap.again:
            ended = error if error is not None else SparkwrightError("tuning ended")
            if self._plan:
                await self.swap.undo(self._plan, ended)
            if isinstance(ended, SparkwrightError) and error is None and self.swap.begun:
                self.services.notice(ended.message)
        elif self._plan:
            async with holding(self.services, self._plan.placement.nodes, f"end of tuning {self._plan.deployment}"):
                await clean_nodes(self.services, self._plan)

    def result(self) -> Tuned:
        survey, trials = self.survey, tuple(self.trials)
        best = search.best_point(survey.settings, trials) if len(scored(trials)) >= _COMPARED else None
        changes = {} if best is None else dict(variant(survey.settings, best).keys) | self._fastest(best)
        done = not search.upcoming(survey.settings, survey.first, trials, survey.good)
        return Tuned(
            id=self.journal.id,
            goal=survey.wanted.goal,
            recipe=survey.request.recipe.label,
            settings=(*survey.settings, *survey.starts),
            candidates=survey.candidates,
            trials=trials,
            space=search.space_size(survey.settings),
            best=best,
            effects=effects.effects(survey.settings, trials),
            done=done,
            note=self.note or self._doubt(),
            simulated=survey.simulated,
            profile=survey.source.made,
            text=survey.source.written(changes) if changes else "",
            most=search.trial_limit(survey.settings),
            needs=0.0 if done else self._needs(),
        )

    def _needs(self) -> float:
        """Seconds for the settings that were not tried, at the pace of those that were."""
        tried = {one.point for one in self.trials}
        left = max(1, search.trial_limit(self.survey.settings) - len(tried))
        return sum(one.seconds for one in self.trials) / len(tried) * left if tried else 0.0

    def _fastest(self, best: Point) -> dict[str, Any]:
        """Settings compared by time to ready: the values that start a tenth sooner than the recipe's own."""
        found: dict[str, Any] = {}
        for setting in self.survey.starts:
            took = {
                one.detail: one.start for one in self.trials if one.rung == START and one.point == best and one.scores
            }
            known = {value: took[what] for value in setting.values if (what := str({setting.key: value})) in took}
            first, own = min(known, key=lambda value: known[value], default=None), known.get(setting.values[0])
            if first is not None and own is not None and known[first] < _SOONER * own:
                found[setting.key] = first
        return found

    def _doubt(self) -> str:
        own = self._own()
        if own is None or self._compared(own):
            return ""
        return "quality was not judged: the model does not follow a one-word instruction with the recipe's own settings"

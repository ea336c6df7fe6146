"""The search space of `tune` on these nodes: settings, the points that the plan allows, the recipe of each."""

from collections.abc import Mapping, Sequence

from sparkwright.app.cluster_state import gather_state, nodes_for
from sparkwright.app.plan.gate import calibrated, judge_of, unreal
from sparkwright.app.plan.planning import make_plan
from sparkwright.app.services import ClusterState, LaunchRequest, Services
from sparkwright.domain.command import Command
from sparkwright.domain.errors import RecipeError, UsageError
from sparkwright.domain.finding import prevented
from sparkwright.domain.plan import stopping
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.tuning import Candidate, Point, TuneGoal, TuneSetting
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.domain.verdict import Estimate, Load
from sparkwright.planner.judge import RealJudge
from sparkwright.planner.remedies import changed
from sparkwright.planner.usable import with_published
from sparkwright.recipes.edit_file import add_profile
from sparkwright.recipes.load import load_recipe
from sparkwright.tune import search
from sparkwright.tune import settings as known
from sparkwright.tune.candidates import ordered, predicted, tree_of, unsafe, variant

_REFUSED = 40  # that are kept to be shown
_BENCH = 60.0  # seconds of a short bench and the probes, once it serves


@dataclass(frozen=True, slots=True)
class TuneSource:
    """The recipe's file as it was read. profile: the one that is tuned, '' for the base; made: the new one's name."""

    text: str
    name: str
    profile: str
    made: str

    def written(self, changes: Mapping[str, object]) -> str:
        """The file with one profile more: those changes on top of the tuned profile. All else stays as written."""
        return add_profile(self.text, self.made, self.profile, tree_of(changes))

    def recipe(self, changes: Mapping[str, object]) -> Recipe:
        """Raises RecipeError for values that no recipe may have."""
        return load_recipe(self.written(changes), self.name, self.made)


@dataclass(frozen=True, slots=True)
class TuneRequest:
    """The command line. only: names of settings, () for all; values: `KEY=V1,V2`. users: requests or agents at once."""

    goal: TuneGoal
    only: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    users: int = 0
    seed: int = 1


@dataclass(slots=True)
class TuneSurvey:
    """settings: searched by answers; starts: compared by the time to ready. Answers of the plan are kept."""

    services: Services
    request: LaunchRequest
    source: TuneSource
    wanted: TuneRequest
    state: ClusterState
    judge: RealJudge
    settings: tuple[TuneSetting, ...]
    starts: tuple[TuneSetting, ...]
    first: tuple[Point, ...] = ()
    _known: dict[Point, Candidate] = field(default_factory=dict)

    @property
    def simulated(self) -> bool:
        return unreal(self.services.cluster, self.request.recipe)

    @property
    def trial(self) -> Estimate | None:
        """Seconds of a trial of the recipe's own settings: its start as predicted, and a bench with its probes."""
        speed = None if self.simulated else self.judge.speed(self.request.recipe, Load())
        if speed is None or not speed.loading.known:
            return None
        start = speed.loading
        return Estimate(start.value + _BENCH, start.low + _BENCH, start.high + _BENCH, start.why)

    def candidate(self, point: Point) -> Candidate:
        if point not in self._known:
            self._known[point] = self._judged(point)
        return self._known[point]

    def good(self, point: Point) -> bool:
        return not self.candidate(point).refused

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The candidates of the first rung in order, then those that the plan refuses."""
        refused = [one for one in self._known.values() if one.refused and one.point not in self.first]
        return (*map(self.candidate, self.first), *refused[:_REFUSED])

    def recipe(self, point: Point, more: Mapping[str, object] | None = None) -> Recipe:
        return self.source.recipe({**variant(self.settings, point).keys, **(more or {})})

    def _judged(self, point: Point) -> Candidate:
        changes = variant(self.settings, point)
        try:
            made = self.recipe(point)
        except RecipeError as error:
            return Candidate(point, changes.keys, 0.0, error.message.splitlines()[-1])
        recipe = changed(self.request.recipe, changes)
        verdict = None if self.simulated else self.judge.verdict(recipe)
        # The recipe's own settings are judged as `up` does, which lets start what has been seen to.
        why = unsafe(verdict) if verdict and any(point) else ""
        try:
            if not why:
                plan = make_plan(self.services, replace(self.request, recipe=made), self.state)
                stops = stopping(plan, self.request.force)
                why = f"{prevented(stops)} ({', '.join(dict.fromkeys(one.code for one in stops))})" if stops else ""
        except UsageError as error:
            why = error.message.splitlines()[-1]
        score = 0.0 if why else predicted(recipe, self.judge, verdict, self.wanted.goal)
        return Candidate(point, changes.keys, score, why)


async def survey(services: Services, request: LaunchRequest, source: TuneSource, wanted: TuneRequest) -> TuneSurvey:
    """Asks the nodes; changes nothing. Raises UsageError where there is nothing to search."""
    nodes = nodes_for(services, request.recipe)
    state = calibrated(services, request, await gather_state(services, nodes, request.recipe))
    request = replace(request, recipe=with_published(request.recipe, state.published, state.draft))
    found = known.settings(request.recipe, wanted.goal, await _cores(services, nodes[0].name))
    found = _named(known.add_settings(request.recipe, found, wanted.values), wanted)
    searched = tuple(one for one in found if not one.by_start)
    starts = tuple(one for one in found if one.by_start)
    if not searched:
        engine = request.recipe.engine.name
        raise UsageError(f"no setting of {engine} to search for {wanted.goal}", "--try KEY=VALUE,VALUE names one")
    made = TuneSurvey(services, request, source, wanted, state, judge_of(request, state, nodes), searched, starts)
    own = (0,) * len(searched)
    if refused := made.candidate(own).refused:
        raise UsageError(f"{request.recipe.label}: its own settings are refused: {refused}", "sparkwright plan RECIPE")
    points = (own, *search.design(searched, wanted.seed, made.good))
    made.first = tuple(one.point for one in ordered([made.candidate(point) for point in points]))
    return made


def _named(found: Sequence[TuneSetting], wanted: TuneRequest) -> tuple[TuneSetting, ...]:
    """Raises UsageError for a setting that is none."""
    names = [one.name for one in found]
    if odd := [name for name in wanted.only if name not in names]:
        raise UsageError(f"no setting {odd[0]!r} for {wanted.goal}", f"settings: {', '.join(names)}")
    given = {text.partition("=")[0] for text in wanted.values}
    return tuple(one for one in found if not wanted.only or one.name in wanted.only or one.key in given)


async def _cores(services: Services, node: str) -> int:
    found = await services.run(node, Command(("nproc",), timeout=10.0))
    text = found.stdout.strip()
    return int(text) if found.ok and text.isdigit() and len(text) < 5 else 0

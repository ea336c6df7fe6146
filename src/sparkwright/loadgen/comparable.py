"""The comparability of two runs, and the differences between them."""

from collections.abc import Iterator

from sparkwright.domain.run import Run, RunConditions
from sparkwright.domain.summary import RunSummary
from sparkwright.domain.workload import LevelPlan, Single
from sparkwright.loadgen import stated
from sparkwright.loadgen.validity import is_estimate

# What may differ from run to run: it is what people compare.
_FREE = ("endpoint", "deployment", "recipe", "recipe_hash", "image", "engine", "engine_version", "max_context")
_HOW = ("api", "thinking", "ignore_eos", "temperature")


def refused(base: RunSummary, new: RunSummary, allow_simulated: bool) -> tuple[str, ...]:
    """Reasons not to compare them, one sentence each."""
    found = [f"{one.run.id} is not valid: {'; '.join(one.invalid)}" for one in (base, new) if one.invalid]
    found += _workloads(base.run, new.run)
    ours, theirs = base.run.conditions, new.run.conditions
    if _plain(ours.model) != _plain(theirs.model):
        found.append(f"the models differ: {ours.model} and {theirs.model}")
    if not imported(base.run, new.run) and _counted(ours) != _counted(theirs):
        was, now = (one.tokenizer or "none that is known" for one in (ours, theirs))
        found.append(f"prompts were measured by different tokenizers: {was} and {now}")
    if ours.simulated != theirs.simulated and not allow_simulated:
        which, other = (base, new) if ours.simulated else (new, base)
        found.append(f"{which.run.id} is simulated and {other.run.id} is measured: --allow-simulated compares them")
    if not found and not paired_levels(base.run, new.run):
        found.append("they have no level in common")
    return tuple(dict.fromkeys(found))


def _counted(conditions: RunConditions) -> str:
    """Estimates differ a little from run to run: they are one way of counting."""
    return "estimate" if is_estimate(conditions.tokenizer) else conditions.tokenizer


def _plain(model: str) -> str:
    """The model's name without its publisher: servers list it with or without."""
    return model.rstrip("/").rpartition("/")[2].lower()


def imported(base: Run, new: Run) -> bool:
    """True if one of them is another tool's: it has other names for the same, and reports less."""
    return bool(base.imported or new.imported)


def _workloads(base: Run, new: Run) -> list[str]:
    ours, theirs = base.workload, new.workload
    if imported(base, new):
        return []
    if (ours.name, ours.version) != (theirs.name, theirs.version):
        return [f"the workloads differ: {ours.name}@{ours.version} and {theirs.name}@{theirs.version}"]
    values = [(name, getattr(ours, name), getattr(theirs, name)) for name in _HOW]
    found = [f"{name} differs: {was} and {now}" for name, was, now in values if was != now]
    plans = {plan.name: plan for plan in theirs.levels}
    for plan in ours.levels:  # how many requests is a matter of patience
        if (other := plans.get(plan.name)) and (plan.shape, plan.pace) != (other.shape, other.pace):
            found.append(f"level {plan.name} asks for something else in each")
    return found


def paired_levels(base: Run, new: Run) -> tuple[tuple[str, str], ...]:
    """Levels of base and new that ask for the same: by name, or by shape and load where a tool has names of its own."""
    names = [plan.name for plan in _plans(new)]
    if not imported(base, new):
        return tuple((plan.name, plan.name) for plan in _plans(base) if plan.name in names)
    shapes = {key: plan.name for plan in reversed(_plans(new)) if (key := _key(plan))}
    return tuple((plan.name, shapes[key]) for plan in _plans(base) if (key := _key(plan)) in shapes)


def _plans(run: Run) -> list[LevelPlan]:
    """The measured plans, each once."""
    return list({level.plan.name: level.plan for level in run.levels}.values())


def _key(plan: LevelPlan) -> tuple[object, ...] | None:
    shape = plan.shape
    if not isinstance(shape, Single):
        return None
    ends = (shape.prompt.low, shape.prompt.high, shape.output.low, shape.output.high)
    return (*ends, shape.depth, shape.warm and shape.depth > 0, plan.pace.concurrency, plan.pace.rate)


def differences(base: Run, new: Run) -> Iterator[tuple[str, str, str]]:
    """(condition, in base, in new) of what may differ and does."""
    ours, theirs = base.conditions, new.conditions
    for name in _FREE:
        if getattr(ours, name) != getattr(theirs, name):
            yield name, str(getattr(ours, name)), str(getattr(theirs, name))
    for name in ("flags", "nodes"):
        was, now = getattr(ours, name), getattr(theirs, name)
        gone, come = (" ".join(one for one in mine if one not in its) for mine, its in ((was, now), (now, was)))
        if gone or come:
            yield name, gone, come
    for name in ("seed", "repeats"):
        if (was := getattr(base.workload, name)) != (now := getattr(new.workload, name)):
            yield name, str(was), str(now)


def comparison_notes(base: RunSummary, new: RunSummary) -> tuple[str, ...]:
    """Allowed differences, and reasons that weaken verdicts."""
    ours, theirs = base.run, new.run
    found = [f"{name}: {was or 'not known'} -> {now or 'not known'}" for name, was, now in differences(ours, theirs)]
    if imported(ours, theirs):
        found.append("levels are matched by depth, prompt, output and load: the names are another tool's")
    totals = [run.id for run in (ours, theirs) if stated.missing(run.levels)]
    if totals:
        found.append(f"{' and '.join(totals)}: totals without intervals, so a ratio and no verdict")
    if base.best_rate != new.best_rate:
        was, now = (f"{one.best_rate:g}/s" if one.best_rate else "none" for one in (base, new))
        found.append(f"highest rate within the SLO: {was} -> {now}")
    if ours.workload.slo != theirs.workload.slo:
        found.append("the SLOs differ: goodput is left out")
    if ours.conditions.simulated != theirs.conditions.simulated:
        found.append("one is simulated: its figures are made up")
    doubtful = {one.plan.name: None for run in (base, new) for one in run.levels if one.doubts}
    return (*found, *([f"in doubt: {', '.join(doubtful)}"] if doubtful else []))

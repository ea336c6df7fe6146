"""The real judge: ledgers of all nodes, with what is changed in the recipe and done on the nodes."""

from dataclasses import replace

import pytest

from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.facts import GpuProcess, Memory, NodeFacts, RankStatus, Unknown
from sparkwright.domain.ledger import KV_POOL, KvCapacity, Lack, LedgerLine, MemoryLedger, Origin
from sparkwright.domain.recipe import Parallelism, Recipe
from sparkwright.domain.units import GIB
from sparkwright.domain.verdict import ActionKind, Goal, Load
from sparkwright.planner.judge import Ground, RealJudge, verdict
from sparkwright.planner.knobs import Surroundings, list_knobs
from sparkwright.planner.optimize import BUDGET, optimize
from sparkwright.planner.pool import actions
from sparkwright.planner.remedies import changed, remedies
from sparkwright.planner.speed import UNCACHED
from unit.for_each import for_each
from unit.planner.memory_samples import gb10_node, model_shape, recipe

NVFP4 = model_shape("minimax-m2.7-nvfp4")
SERVICES = GpuProcess(77, "/usr/bin/comfy", 16 * GIB)


def two_nodes(taken: float = 6.0, **first: object) -> dict[str, NodeFacts]:
    """Two GB10 nodes; what is reported besides is of the first."""
    one = gb10_node(taken)
    return {"spark-1": replace(one, **first), "spark-2": replace(one, node="spark-2")}  # type: ignore[arg-type]


def minimax(**serving: object) -> Recipe:
    told = {"context": 196608, "sequences": 8, "memory_fraction": 0.82, **serving}
    return recipe(NVFP4, tp=2, nodes=2, serving=told)


def make_judge(facts: dict[str, NodeFacts] | None = None, **more: object) -> RealJudge:
    return RealJudge(Ground(("spark-1", "spark-2"), "big", facts or two_nodes(), **more))  # type: ignore[arg-type]


def around(made: RealJudge, types: tuple[str, ...] = ("auto", "fp8")) -> Surroundings:
    facts = [made.ground.facts[name] for name in made.ground.nodes]
    return Surroundings(2, NVFP4, types, 0.92, actions(facts, "big"))


def ledger(name: str, kv: int, claim: int = 0, needed: int | None = None) -> MemoryLedger:
    pool = LedgerLine("pool", 120, Origin.MEASURED)
    lines = (LedgerLine("in use now", 20, Origin.MEASURED), LedgerLine(KV_POOL, kv, Origin.COMPUTED))
    return MemoryLedger(name, pool, lines, claim=claim, kv_needed=needed)


@pytest.mark.parametrize(
    ("other", "lack", "short"),
    [
        (ledger("b", 10), None, 0),
        (ledger("b", 50, claim=110, needed=60), Lack.CLAIM, 10),
        (ledger("b", 0, claim=90, needed=60), Lack.POOL, 1),
        (ledger("b", 101), Lack.NODE, 1),
        (ledger("b", 50, claim=90, needed=60), Lack.CONTEXT, 10),
    ],
)
def test_the_worst_node_decides(other: MemoryLedger, lack: Lack | None, short: int) -> None:
    """One node that cannot is enough, and the verdict names it with what it lacks."""
    found = verdict((ledger("a", 10), other))
    assert (found.fits, found.lack, found.short, found.node) == (lack is None, lack, short, "b" if lack else "")
    assert found.room == min(100 - other.lines[1].bytes, 90)


def test_a_node_that_reports_nothing_is_not_judged() -> None:
    """Neither refused nor reported to fit."""
    facts = two_nodes(memory=Unknown("odd", "not understood"))
    found = make_judge(facts).verdict(minimax())
    assert found.fits and not found.known
    assert remedies(minimax(), make_judge(facts), around(make_judge(facts))) == ((), ())


@pytest.mark.parametrize("taken", [50.0, 90.0])
def test_no_knob_changes_a_lack_that_it_keeps(taken: float) -> None:
    """Guards what a search does not ask: the engine claims as much with every step of such a knob."""
    made, wanted = make_judge(two_nodes(taken)), minimax(memory_fraction=0.9)
    lack = made.verdict(wanted).lack
    keeping = [knob for knob in list_knobs(wanted, around(made)) if lack in knob.keeps]
    kinds = {knob.kind for knob in keeping}
    assert kinds == {"batched tokens", "KV type", "sequences", "context", "CUDA graphs", "nodes"}
    steps = [step for knob in keeping for step in (knob.steps[0], knob.steps[-1])]
    assert {made.verdict(changed(wanted, step.variant)).lack for step in steps} == {Lack.CLAIM}


@pytest.mark.parametrize(
    ("cached", "lacks", "known"), [(4, "", True), (40, "", False), (0, "", False), (4, "spark-2", False)]
)
def test_files_that_no_page_cache_can_hold_come_from_the_disk(cached: int, lacks: str, known: bool) -> None:
    """The range of a start is half as wide then; a stock node, or files that are still to be copied, tell nothing."""
    facts = two_nodes()
    for name, one in facts.items():
        assert isinstance(one.memory, Memory)
        facts[name] = replace(one, memory=replace(one.memory, cached=cached * GIB))
    files = Checkpoint("/m", "/m", "abc", 131 * GIB, 4, shape=NVFP4, weights=131 * GIB)
    found = make_judge(facts, checkpoints={name: files for name in facts if name != lacks}).speed(minimax(), Load())
    assert found
    wide = found.loading.high / found.loading.low
    assert (found.starts[0][0] == UNCACHED) is known
    assert wide < 7 if known else wide > 10
    assert found.starts[1] == make_judge(two_nodes(), checkpoints={"spark-1": files}).speed(minimax(), Load()).starts[1]  # type: ignore[union-attr]


def test_a_line_that_nobody_knows_is_no_promise() -> None:
    """An unknown weight may seem to fit: nothing is proposed or optimized on such ground."""
    weights = LedgerLine("weights", 0, Origin.ASSUMED, "size not known", known=False)
    found = verdict((replace(ledger("a", 10), lines=(weights, *ledger("a", 10).lines)),))
    assert found.fits and not found.known


def test_stopping_a_process_frees_what_it_holds() -> None:
    """Once: its pages are not counted a second time as kept by the driver."""
    busy = two_nodes(gpu_processes=(SERVICES,), memory=Memory(*_used(22.0), unaccounted=22 * GIB))
    made = make_judge(busy)
    (stop,) = (group for group in actions(list(busy.values()), "big") if group[0].kind is ActionKind.STOP)
    before = made.ground.ledgers(minimax())[0]
    assert made.verdict(minimax(memory_fraction=0.88)).lack is Lack.CLAIM
    assert stop[0].command == "sudo kill 77" and stop[0].frees == 16 * GIB
    after = made.verdict(minimax(memory_fraction=0.85), stop)
    assert after.lack is not Lack.CLAIM
    assert after.room <= before.left + 16 * GIB


def _used(taken: float) -> tuple[int, int, int, int, int, int]:
    memory = gb10_node(taken).memory
    assert isinstance(memory, Memory)
    return memory.total, memory.free, memory.available, 0, 0, 0


def test_another_deployment_of_ours_ends_with_down() -> None:
    """The deployment ends on both nodes with one command; its processes are not killed by number."""
    rank = RankStatus("old", 0, "spark-1", "docker", "running", "c")
    facts = two_nodes(gpu_processes=(SERVICES,), ranks=(rank,))
    facts["spark-2"] = replace(facts["spark-2"], gpu_processes=(SERVICES,), ranks=(rank,))
    (group,) = actions(list(facts.values()), "big")
    assert {action.command for action in group} == {"sparkwright down old"}
    assert [action.node for action in group] == ["spark-1", "spark-2"]
    assert actions(list(facts.values()), "old") == ()


def test_dropping_the_page_cache_is_no_news_to_who_counts_available_memory() -> None:
    """vLLM and SGLang count reclaimable pages as free on a GB10: nothing is proposed that changes nothing."""
    total, free, available, *_ = _used(30.0)
    facts = two_nodes(memory=Memory(total, free - 20 * GIB, available, 20 * GIB, 0, 0, 0))
    found, _ = remedies(minimax(memory_fraction=0.8), make_judge(facts), around(make_judge(facts)))
    assert found and not any("drop_caches" in remedy.change for remedy in found)


def test_a_changed_model_is_judged_by_its_own_files() -> None:
    """The checkpoint on a disk that the recipe would then name."""
    small = Checkpoint("/m", "/m", "abc", 40 * GIB, 4, shape=NVFP4)
    big = Checkpoint("/b", "/b", "", 230 * GIB, 4, shape=NVFP4)
    made = make_judge(checkpoints={"spark-1": big}, others={("org/small", ""): small})
    changed = replace(minimax(), model=replace(minimax().model, id="org/small"))
    assert not made.verdict(minimax()).fits
    assert made.verdict(changed).room > made.verdict(minimax()).room


def test_nodes_that_are_not_there_are_taken_to_be_alike() -> None:
    """Four nodes hold half of what two do; none of them is called by the name of another."""
    four = replace(minimax(), nodes=4, parallelism=Parallelism(tp=4))
    ledgers = make_judge().ground.ledgers(four)
    assert [found.node for found in ledgers] == ["spark-1", "spark-2", "spark-2 +1", "spark-2 +2"]
    assert ledgers[3].engine_bytes < make_judge().ground.ledgers(minimax())[0].engine_bytes


@pytest.mark.parametrize(
    ("taken", "serving"),
    [(30.0, {"memory_fraction": 0.9}), (6.0, {"memory_fraction": 0.6}), (45.0, {}), (6.0, {"memory_fraction": 0.64})],
)
def test_what_is_proposed_fits(taken: float, serving: dict[str, object]) -> None:
    """Asked again, the ledgers of the changed recipe lack nothing on any node, and leave nothing to luck."""
    made = make_judge(two_nodes(taken))
    found, _ = remedies(minimax(**serving), made, around(made))
    assert found
    for remedy in found:
        ledgers = made.ground.ledgers(remedy.recipe)
        assert all(entry.lack is None and entry.left >= 0 for entry in ledgers), remedy.change


@pytest.mark.full
@pytest.mark.parametrize("goal", Goal)
def test_a_search_asks_within_its_budget_and_finds_what_fits(goal: Goal) -> None:
    """Guards the number of evaluations, with the real arithmetic."""
    made = make_judge()
    found = optimize(minimax(), made, around(made), goal)
    assert found.judged <= BUDGET
    assert all(entry.lack is None for entry in made.ground.ledgers(found.best.recipe))


@for_each("each, ranks, sequences, tokens", [(21.1, 2, 42.2, 2000), (0.6, 2, 0.6, 2000), (21.1, 1, 21.1, 1000)])
def test_data_parallel_ranks_have_a_pool_each(each: float, ranks: int, sequences: float, tokens: int) -> None:
    """Guards the count of users: what all ranks hold together, but a request lies in one of them."""
    held = replace(ledger("a", 10), capacity=KvCapacity(10 * GIB, 1000, 1000, each))
    found = verdict((held, held), ranks)
    assert (found.sequences, found.tokens) == (pytest.approx(sequences), tokens)
    assert found.kv and found.kv.tokens == 1000

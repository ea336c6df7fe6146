"""The memory ledger: what is free, what the engine takes, and where each figure is from."""

from dataclasses import replace
from math import hypot

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.domain.facts import NodeFacts, Unknown
from sparkwright.domain.ledger import (
    CONTEXT,
    GRAPHS,
    IN_USE,
    KV_POOL,
    OVERHEAD,
    STATES,
    TIER,
    WEIGHTS,
    Counts,
    Fit,
    FreeMemory,
    Lack,
    LedgerLine,
    MemoryLedger,
    Origin,
)
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, Runtime, Serving, Speculation
from sparkwright.domain.units import GIB, gib
from sparkwright.planner.ledger import ledger, ledgers
from unit.checks.samples import ABSENT, PLAYED, RECIPE, SIZE, TOTAL, WHOLE, healthy
from unit.planner.memory_samples import H200, discrete, gb10_node, model_shape, recipe

CPU = replace(RECIPE, engine=EngineChoice("llama-cpp", "1", Runtime.PROCESS), nodes=1, parallelism=Parallelism())
DENSE, MINIMAX, V4 = model_shape("qwen3-8b"), model_shape("minimax-m2.7-nvfp4"), model_shape("deepseek-v4-flash")


def make_ledger(of: Recipe = RECIPE, checkpoint: object = WHOLE, world: int = 2, **facts: object) -> MemoryLedger:
    return ledger(of, healthy("spark-1", **facts), checkpoint, world, "big")  # type: ignore[arg-type]


def one_rank_ledger(of: Recipe, facts: NodeFacts | None = None) -> MemoryLedger:
    """One rank on one node, without files."""
    return ledger(of, facts or gb10_node(), None, of.parallelism.world_size)


def ledger_line(of: MemoryLedger, name: str) -> LedgerLine:
    found = of.line(name)
    assert found is not None
    return found


def line_gib(of: MemoryLedger, name: str) -> float:
    return ledger_line(of, name).bytes / GIB


def test_whole_ledger() -> None:
    """Guards the arithmetic, and that each line reports where it comes from."""
    found = make_ledger()
    assert [(x.name, gib(x.bytes), x.origin) for x in (found.pool, *found.lines)] == [
        ("pool", "121.6 GiB", Origin.MEASURED),
        (IN_USE, "9.0 GiB", Origin.MEASURED),
        (WEIGHTS, "69.4 GiB", Origin.ASSUMED),
        ("engine's processes", "2.0 GiB", Origin.ASSUMED),
        ("communication buffers", "0.5 GiB", Origin.ASSUMED),
        (CONTEXT, "1.7 GiB", Origin.ASSUMED),
        ("activations", "3.2 GiB", Origin.ASSUMED),
        (GRAPHS, "1.7 GiB", Origin.ASSUMED),
        (KV_POOL, "21.3 GiB", Origin.COMPUTED),
    ]
    assert ledger_line(found, KV_POOL).why == (
        "0.80 x 121.6 GiB - 69.4 GiB weights - 1.7 GiB CUDA kernels - 3.2 GiB activations - 1.7 GiB CUDA graphs"
    )
    assert found.left == pytest.approx(TOTAL - int(0.8 * TOTAL) - 11.5 * GIB, abs=2)
    assert (found.claim, found.fits, found.kv_tokens) == (int(0.8 * TOTAL), True, None)
    assert found.engine_bytes == found.claim - ledger_line(found, KV_POOL).bytes


@pytest.mark.parametrize(
    ("name", "fraction", "more", "printed", "tokens"),
    [
        ("qwen3-8b", 0.5, {"context": 32768}, 52.19, 380_048),
        ("qwen3-30b-a3b", 0.8, {"context": 32768}, 52.06, 568_624),
        ("dsv2-lite", 0.6, {"context": 65536}, 52.40, 1_808_992),
        ("minimax-m2.7-nvfp4", 0.82, {"context": 196608, "kv_dtype": "fp8"}, 48.18, 814_848),
        ("deepseek-v4-flash", 0.75, {"context": 1048576, "sequences": 6, "kv_dtype": "fp8"}, 26.72, 4_047_815),
    ],
)
def test_real_starts(name: str, fraction: float, more: dict[str, object], printed: float, tokens: int) -> None:
    """Guards our own captures of vLLM 0.21.0 on H200s, eager: available KV GiB and its tokens within 1 %."""
    tp = 2 if printed in (48.18, 26.72) else 1
    serving = {"memory_fraction": fraction, **more}
    found = one_rank_ledger(
        recipe(model_shape(name), tp=tp, serving=serving, flags={"enforce-eager": True}), discrete()
    )
    assert line_gib(found, KV_POOL) == pytest.approx(printed, rel=0.01)
    assert found.kv_tokens == pytest.approx(tokens, rel=0.01)
    assert found.fits and found.kv_needed is not None and found.kv_needed < ledger_line(found, KV_POOL).bytes


def test_real_start_with_graphs() -> None:
    """Guards the capture with CUDA graphs, which 0.21.0 takes off the KV pool: 51.81 GiB and 754,608 tokens."""
    serving = {"memory_fraction": 0.5, "context": 32768, "kv_dtype": "fp8"}
    found = one_rank_ledger(recipe(DENSE, serving=serving), discrete())
    assert line_gib(found, KV_POOL) == pytest.approx(51.81, rel=0.01)
    assert found.kv_tokens == pytest.approx(754_608, rel=0.01)
    before = one_rank_ledger(recipe(DENSE, "vllm 0.20.2", serving=serving), discrete())
    assert line_gib(before, KV_POOL) - line_gib(found, KV_POOL) == pytest.approx(line_gib(found, GRAPHS), abs=0.01)
    assert found.left - before.left == ledger_line(before, GRAPHS).bytes


def test_seed_v4_flash() -> None:
    """Reports 003 and 004: the 1M profile at 0.80 on vLLM 0.23.1 gave 1.43 million tokens; within 5 %, and it fits."""
    serving = {"context": 1_000_000, "sequences": 6, "batched_tokens": 8192, "kv_dtype": "fp8", "memory_fraction": 0.8}
    graphs = {"max-cudagraph-capture-size": 8}
    for engine in ("vllm 0.23.1rc1.dev407", "vllm-ray 0.23.1rc1.dev407"):
        drafting = recipe(V4, engine, 2, serving=serving, speculation=Speculation("mtp", 2), flags=graphs)
        found = one_rank_ledger(drafting)
        assert found.kv_tokens == pytest.approx(1_430_000, rel=0.05)
        assert found.fits


def test_seed_minimax_fp8_is_refused() -> None:
    """Guards report 001: FP8 weights on two nodes leave about 5 GB each, and 196,608 tokens need four times that."""
    fp8 = replace(MINIMAX, format="fp8", group=128, rows=128, expert_format="", expert_group=0)
    serving = {"context": 196608}
    for engine in ("sglang 0.5.12", "vllm 0.21.0"):
        found = one_rank_ledger(recipe(fp8, engine, 2, serving=serving))
        assert ledger_line(found, KV_POOL).bytes == 0 and found.lack in (Lack.POOL, Lack.CLAIM)
        assert 0 < found.pool.bytes - ledger_line(found, WEIGHTS).bytes - ledger_line(found, IN_USE).bytes < 10e9
    nvfp4 = one_rank_ledger(recipe(MINIMAX, tp=2, serving=serving | {"memory_fraction": 0.82, "kv_dtype": "fp8"}))
    assert nvfp4.fits and nvfp4.kv_needed is not None and nvfp4.kv_needed < ledger_line(nvfp4, KV_POOL).bytes


@pytest.mark.parametrize(("fraction", "passes"), [(0.88, False), (0.82, True)])
def test_seed_other_services(fraction: float, passes: bool) -> None:
    """Guards report 001: with 16 GB of services next to what a node takes itself, 0.88 is refused and 0.82 passes."""
    taken = 4.9 + 16e9 / GIB
    serving = {"memory_fraction": fraction, "context": 131072, "kv_dtype": "fp8"}
    found = one_rank_ledger(recipe(MINIMAX, "vllm-ray 0.21.0", 2, serving=serving), gb10_node(taken))
    assert (found.claim <= found.pool.bytes - ledger_line(found, IN_USE).bytes) is passes
    assert found.fits is passes


def test_unknown_weights_report_it() -> None:
    """Guards that a KV pool is not known where the weights are not: they would be drawn as room for tokens."""
    found = make_ledger(replace(RECIPE, model=Model("org/big")), None)
    assert (ledger_line(found, WEIGHTS).bytes, ledger_line(found, WEIGHTS).origin) == (0, Origin.ASSUMED)
    assert not ledger_line(found, KV_POOL).known and found.unknown == (WEIGHTS, KV_POOL) and found.fit is Fit.UNKNOWN
    assert (found.unknown, found.loading, found.capacity) == ((WEIGHTS, KV_POOL), None, None)


def test_a_share_of_what_unknown_weights_leave_is_unknown() -> None:
    """TensorRT-LLM's pool is reckoned after loading: a figure without the weights would be made up."""
    engine = replace(RECIPE.engine, name="trtllm")
    assert make_ledger(replace(RECIPE, model=Model("org/big"), engine=engine), None).unknown == (WEIGHTS, KV_POOL)


def test_pinned_kv_pool() -> None:
    """Guards that a pool given in bytes is taken as it is, for each rank that lives in the pool."""
    pinned = replace(RECIPE, serving=Serving(memory_fraction=0.8, kv_cache_bytes=12 * GIB))
    assert (line_gib(make_ledger(pinned), KV_POOL), ledger_line(make_ledger(pinned), KV_POOL).why) == (
        12,
        "pinned by serving.kv_cache_bytes",
    )
    assert line_gib(make_ledger(pinned, world=1), KV_POOL) == 24


def test_ranks_that_share_a_node_are_added_up() -> None:
    """Guards that two ranks on one node take the memory of two."""
    found = make_ledger(world=1)
    assert (ledger_line(found, WEIGHTS).bytes, line_gib(found, CONTEXT)) == (SIZE, pytest.approx(3.4))
    assert ledger_line(found, CONTEXT).why.endswith("; x 2 ranks here")


def test_the_simulator_takes_nothing() -> None:
    """Guards that a simulated run fits on any machine and reports that it is one."""
    found = make_ledger(replace(PLAYED, model=replace(PLAYED.model, size=SIZE)), None)
    assert [ledger_line(found, name).bytes for name in (WEIGHTS, KV_POOL)] == [0, 0]
    assert "simulated: allocates nothing; a real engine would take 69.4 GiB" in ledger_line(found, WEIGHTS).why
    assert "would take 21.3 GiB" in ledger_line(found, KV_POOL).why
    assert (gib(ledger_line(found, OVERHEAD).bytes), found.claim, found.loading) == ("0.2 GiB", 0, None)


def test_llama_cpp_takes_what_it_needs() -> None:
    """Guards that it is checked against no fraction, and takes the cache of every slot at start."""
    found = make_ledger(CPU, world=1)
    assert found.unknown == (KV_POOL,)
    assert (ledger_line(found, KV_POOL).bytes, found.claim, gib(ledger_line(found, OVERHEAD).bytes)) == (
        0,
        0,
        "1.0 GiB",
    )
    one, four = (
        one_rank_ledger(recipe(DENSE, "llama-cpp 1", serving={"context": 8192, "sequences": slots})) for slots in (1, 4)
    )
    assert line_gib(four, KV_POOL) == pytest.approx(4 * line_gib(one, KV_POOL)) and line_gib(one, KV_POOL) > 1


def test_tensorrt_llm_takes_a_share_of_what_is_left() -> None:
    """Its fraction is of what weights leave: checked against one of the pool, a recipe with 0.4 would seem not to
    fit."""
    engine = EngineChoice("trtllm", "1", Runtime.PROCESS)
    found = make_ledger(replace(RECIPE, engine=engine, serving=replace(RECIPE.serving, memory_fraction=0.4)))
    rest = TOTAL - sum(ledger_line(found, name).bytes for name in (IN_USE, WEIGHTS, OVERHEAD))
    assert (ledger_line(found, KV_POOL).bytes, found.claim) == (int(0.4 * rest), 0)


def test_sglangs_fraction_is_of_what_is_free() -> None:
    """Guards that it holds weights and KV pool only: a GB10 with 112 GiB free gave 41.6 GiB at 0.4 next to 3.25."""
    small = replace(DENSE, layers=28, hidden=1536, vocab=151936, heads=12, kv_heads=2, intermediate=8960, tied=True)
    found = one_rank_ledger(
        recipe(small, "sglang 0.5.12", serving={"memory_fraction": 0.4, "context": 32768}), gb10_node(7.7)
    )
    assert line_gib(found, KV_POOL) == pytest.approx(41.6, rel=0.01)
    assert found.claim == int(0.4 * (found.pool.bytes - ledger_line(found, IN_USE).bytes - 2 * GIB))
    kv, weights = ledger_line(found, KV_POOL), ledger_line(found, WEIGHTS)
    assert kv.low is not None and kv.high is not None and weights.high is not None and weights.low is not None
    ends = ((kv.bytes - kv.low, weights.high - weights.bytes), (kv.high - kv.bytes, weights.bytes - weights.low))
    assert all(pool == pytest.approx(hypot(0.4 * 2 * GIB, off), abs=9) for pool, off in ends)
    beside = sum(x.bytes for x in found.lines if x.name in found.outside)
    assert found.left == found.pool.bytes - found.claim - ledger_line(found, IN_USE).bytes - beside
    assert 4 * GIB < beside < 9 * GIB


@pytest.mark.parametrize(
    ("ends", "needed", "fit"),
    [((6, 10, 12), 5, Fit.FITS), ((2, 10, 12), 5, Fit.MAY), ((2, 4, 6), 5, Fit.MAY), ((1, 2, 4), 5, Fit.NOT),
     ((0, 0, 6), 5, Fit.MAY), ((0, 0, 4), 5, Fit.NOT)],
)  # fmt: skip
def test_the_ends_of_the_pool_decide(ends: tuple[int, int, int], needed: int, fit: Fit) -> None:
    """Guards that `fits` holds at the low end, and that only what fails at the high end is refused."""
    low, size, high = (end * GIB for end in ends)
    pool = LedgerLine("pool", 100 * GIB, Origin.MEASURED)
    kv = LedgerLine(KV_POOL, size, Origin.COMPUTED, "why", low, high)
    assert MemoryLedger("a", pool, (kv,), claim=50 * GIB, kv_needed=needed * GIB).fit is fit


@pytest.mark.parametrize(("left", "fit"), [(6, Fit.FITS), (4, Fit.MAY), (0, Fit.MAY), (-1, Fit.NOT)])
def test_a_given_pool_fits_only_with_room_for_what_the_others_may_take_more(left: int, fit: Fit) -> None:
    """Guards against `fits` where nothing shrinks: the widths 3 and 4 GiB of two lines are 5 GiB together."""
    used = LedgerLine(IN_USE, 10 * GIB, Origin.ASSUMED, high=90 * GIB)
    weights = LedgerLine(WEIGHTS, 60 * GIB, Origin.ASSUMED, high=63 * GIB)
    needs = LedgerLine(OVERHEAD, 10 * GIB, Origin.ASSUMED, high=14 * GIB)
    kv = LedgerLine(KV_POOL, (20 - left) * GIB, Origin.COMPUTED)
    pool = LedgerLine("pool", 100 * GIB, Origin.ASSUMED)
    asked = FreeMemory(Counts.AVAILABLE, 90 * GIB, 10 * GIB)
    assert MemoryLedger("a", pool, (used, weights, needs, kv), seen=asked).fit is fit


@pytest.mark.parametrize(("claim", "fit"), [(79, Fit.FITS), (81, Fit.MAY), (89, Fit.MAY), (93, Fit.MAY), (96, Fit.NOT)])
def test_a_node_that_nobody_asked_may_have_more_or_less_free(claim: int, fit: Fit) -> None:
    """Guards against `fits` where a node of the kind may have less free, and refusals where it may have more."""
    used = LedgerLine(IN_USE, 10 * GIB, Origin.ASSUMED, low=5 * GIB, high=20 * GIB)
    weights = LedgerLine(WEIGHTS, 30 * GIB, Origin.MEASURED)
    kv = LedgerLine(KV_POOL, (claim - 30) * GIB, Origin.COMPUTED, "why", (claim - 31) * GIB, (claim - 29) * GIB)
    pool = LedgerLine("pool", 100 * GIB, Origin.ASSUMED)
    assert MemoryLedger("a", pool, (used, weights, kv), claim=claim * GIB).fit is fit


@pytest.mark.parametrize(("left", "fit"), [(-4, Fit.MAY), (-6, Fit.NOT)])
def test_a_given_pool_is_refused_only_where_the_others_at_their_least_leave_no_room(left: int, fit: Fit) -> None:
    """Guards stated sizes of a wide range: lines that may be 3 and 4 GiB smaller are 5 GiB together."""
    weights = LedgerLine(WEIGHTS, 60 * GIB, Origin.ASSUMED, low=57 * GIB, high=90 * GIB)
    needs = LedgerLine(OVERHEAD, 10 * GIB, Origin.ASSUMED, low=6 * GIB, high=10 * GIB)
    kv = LedgerLine(KV_POOL, (30 - left) * GIB, Origin.COMPUTED)
    assert MemoryLedger("a", LedgerLine("pool", 100 * GIB, Origin.MEASURED), (weights, needs, kv)).fit is fit


def test_only_vllm_asks_for_a_whole_context() -> None:
    """Guards that SGLang is not refused for a pool of less than one context: published runs of it serve like that."""
    serving = {"memory_fraction": 0.3, "context": 1 << 20}
    found = [one_rank_ledger(recipe(DENSE, engine, serving=serving)) for engine in ("vllm 0.21.0", "sglang 0.5.20")]
    assert [x.lack for x in found] == [Lack.CONTEXT, None]


def test_max_total_tokens_limits_sglangs_pool() -> None:
    """Guards the option: a start of SGLang 0.5.17 with 65,536 had exactly so many tokens, not the 7 million planned."""
    serving = {"memory_fraction": 0.8, "context": 8192}

    def pool(tokens: int) -> tuple[MemoryLedger, LedgerLine]:
        of = recipe(DENSE, "sglang 0.5.17", serving=serving, flags={"max-total-tokens": tokens})
        found = one_rank_ledger(of, discrete())
        return found, ledger_line(found, KV_POOL)

    found, kv = pool(65536)
    assert found.capacity and found.capacity.reported == 65536
    assert "no more than max-total-tokens" in kv.why
    assert pool(10**9)[1].bytes > 10 * kv.bytes, "more than there is room for is no limit"


def test_sglang_keeps_states_apart() -> None:
    """Guards that a hybrid's pool is cut in keys and values, which it prints, and states, which it does not."""
    found = one_rank_ledger(
        recipe(model_shape("qwen3.6-35b-a3b"), "sglang 0.5.20", serving={"memory_fraction": 0.6, "context": 8192})
    )
    assert line_gib(found, STATES) > 1 and line_gib(found, KV_POOL) > 1
    assert found.engine_bytes + ledger_line(found, STATES).bytes + ledger_line(found, KV_POOL).bytes == found.claim


def test_a_node_without_files_counts_those_of_another() -> None:
    """Guards that the files decide on every node, before they have been copied there, and their config, too."""
    facts = {name: healthy(name) for name in ("spark-1", "spark-2")}
    files = replace(WHOLE, shape=DENSE, bytes=17 * GIB)
    both = ledgers(RECIPE, facts, {"spark-1": files, "spark-2": ABSENT}, tuple(facts), "big")
    assert [x.node for x in both] == ["spark-1", "spark-2"]
    assert both[0].lines == both[1].lines and line_gib(both[0], WEIGHTS) < 10
    assert both[0].kv_tokens


def test_loading_can_be_what_does_not_fit() -> None:
    """Guards that a node with too little free memory for reading the weights does not pass for its small pool."""
    tight = one_rank_ledger(
        recipe(MINIMAX, tp=2, serving={"memory_fraction": 0.1, "kv_cache_bytes": GIB}), gb10_node(65)
    )
    assert not tight.loads and not tight.fits
    assert one_rank_ledger(recipe(MINIMAX, tp=2, serving={"memory_fraction": 0.9, "kv_cache_bytes": GIB})).loads


def test_memory_that_could_not_be_read() -> None:
    """Guards that an unknown pool has no lines that could be compared with it."""
    found = make_ledger(memory=Unknown("cut off", "/proc/meminfo lacks Cached"))
    assert (found.pool.bytes, found.lines, found.claim, found.fits) == (0, (), 0, True)
    assert found.pool.why == "the node's memory could not be read: /proc/meminfo lacks Cached"


SHAPES = [
    None,
    DENSE,
    MINIMAX,
    V4,
    model_shape("qwen3.6-35b-a3b"),
    model_shape("gpt-oss-120b"),
    model_shape("dsv2-lite"),
]
ENGINES = ("vllm 0.21.0", "vllm-ray 0.33.0", "vllm odd", "sglang 0.5.20", "trtllm 1", "llama-cpp b1")


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    of=st.sampled_from(SHAPES),
    engine=st.sampled_from(ENGINES),
    tp=st.sampled_from([1, 2, 4]),
    fraction=st.floats(0.05, 0.95),
    taken=st.floats(0, 120),
    tokens=st.sampled_from([0, 1, 2048, 65536]),
)
def test_any_recipe(of: object, engine: str, tp: int, fraction: float, taken: float, tokens: int) -> None:
    """Guards that lines add up to the pool for whatever is planned, that ranges hold, and that nothing is negative."""
    serving = {"memory_fraction": fraction, "batched_tokens": tokens, "context": 4096}
    found = one_rank_ledger(recipe(of, engine, tp, serving=serving), gb10_node(taken))  # type: ignore[arg-type]
    assert found.left == found.pool.bytes - sum(x.bytes for x in found.lines)
    assert all(x.bytes >= 0 for x in found.lines)
    assert all(x.low is None or x.high is None or x.low <= x.bytes <= x.high for x in found.lines)


def test_nothing_of_a_discrete_machines_ram() -> None:
    """Guards that a GPU with memory of its own is planned with that memory."""
    found = one_rank_ledger(recipe(DENSE, serving={"memory_fraction": 0.5}), discrete())
    assert (found.pool.bytes, found.claim, ledger_line(found, IN_USE).bytes) == (H200, H200 // 2, 0)


@pytest.mark.parametrize(
    ("engine", "flags", "env", "expected"),
    [
        ("vllm 0.26.0", {"kv-offloading-size": 24}, {}, 24),
        ("vllm 0.26.0", {"kv-transfer-config": '{"kv_connector": "LMCacheConnectorV1"}'}, {}, 5),
        ("vllm 0.26.0", {"kv-transfer-config": {"kv_connector": "LMCacheMP"}}, {"LMCACHE_MAX_LOCAL_CPU_SIZE": "8"}, 8),
        ("vllm 0.26.0", {"kv-transfer-config": "{"}, {}, 0),
        ("sglang 0.5.17", {"enable-hierarchical-cache": True, "hicache-size": 20}, {}, 20e9 / GIB),
        ("sglang 0.5.17", {"hicache-size": 20}, {}, 0),
        ("llama-cpp 1", {}, {}, 0),
    ],
)
def test_an_external_tier_takes_from_the_one_pool(
    engine: str, flags: dict[str, object], env: dict[str, str], expected: int
) -> None:
    """Guards nodes whose CPU and GPU share memory: offloaded KV is there twice, and outside the fraction."""
    made = replace(recipe(DENSE, engine, serving={"memory_fraction": 0.5}, flags=flags), env=env)
    plain, found = one_rank_ledger(replace(made, flags={}, env={})), one_rank_ledger(made)
    assert plain.left - found.left == int(expected * GIB)
    assert found.claim == plain.claim and line_gib(found, KV_POOL) == line_gib(plain, KV_POOL)
    assert one_rank_ledger(made, discrete()).line(TIER) is None


def test_a_tier_by_ratio_is_as_unsure_as_the_pool() -> None:
    """Guards HiCache's default: twice the pool does not fit on a node that has one memory."""
    flags = {"enable-hierarchical-cache": True}
    found = one_rank_ledger(
        recipe(DENSE, "sglang 0.5.12", serving={"memory_fraction": 0.8, "context": 8192}, flags=flags)
    )
    pool, tier = ledger_line(found, KV_POOL), ledger_line(found, TIER)
    assert tier.bytes == 2 * pool.bytes and (tier.low, tier.high) == (2 * (pool.low or 0), 2 * (pool.high or 0))
    assert found.lack is Lack.NODE

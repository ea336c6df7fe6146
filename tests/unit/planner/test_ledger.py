"""The first memory ledger: what is free, what the engine takes, and where each figure is from."""

from dataclasses import replace

import pytest

from sparkwright.domain.facts import GpuProcess, Unknown
from sparkwright.domain.ledger import IN_USE, KV_POOL, OVERHEAD, WEIGHTS, LedgerLine, MemoryLedger, Origin
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, Runtime, Serving
from sparkwright.domain.units import GIB, gib
from sparkwright.planner.ledger import driver_retained, ledger
from unit.rules.samples import ABSENT, PLAYED, RECIPE, SIZE, TOTAL, WHOLE, healthy, memory, rank

CPU = replace(RECIPE, engine=EngineChoice("llama-cpp", "1", Runtime.PROCESS), nodes=1, parallelism=Parallelism())


def made(recipe: Recipe = RECIPE, checkpoint: object = WHOLE, world: int = 2, **facts: object) -> MemoryLedger:
    return ledger(recipe, healthy("spark-1", **facts), checkpoint, world, "big")  # type: ignore[arg-type]


def line(of: MemoryLedger, name: str) -> LedgerLine:
    found = of.line(name)
    assert found is not None
    return found


def test_whole_ledger() -> None:
    """Guards the arithmetic, and that each line says where it comes from."""
    found = made()
    assert [(x.name, gib(x.bytes), x.origin) for x in (found.pool, *found.lines)] == [
        ("pool", "121.6 GiB", Origin.MEASURED),
        (IN_USE, "9.0 GiB", Origin.MEASURED),
        (WEIGHTS, "69.4 GiB", Origin.COMPUTED),
        (OVERHEAD, "4.5 GiB", Origin.ASSUMED),
        (KV_POOL, "23.4 GiB", Origin.COMPUTED),
    ]
    assert [x.why for x in found.lines] == [
        "121.6 GiB total - 112.6 GiB available",
        "138.8 GiB (files at /hub/big/snapshots/1) / (tp 2 x pp 1), split evenly",
        "4.5 GiB a rank, 3.4-8.3 seen: context, graphs, activations up to 8192 batched tokens; more tokens take more",
        "0.80 x 121.6 GiB - 69.4 GiB weights - 4.5 GiB overhead",
    ]
    assert found.left == TOTAL - int(0.8 * TOTAL) - 9 * GIB
    assert (found.claim, found.fits, found.kv_tokens) == (int(0.8 * TOTAL), True, None)


def test_driver_retained_pages_are_free_for_the_next_engine() -> None:
    """Guards field guide A1: MemAvailable alone would refuse a launch that works."""
    used = memory(used=85, unexplained=82)
    found = made(memory=used)
    assert gib(line(found, IN_USE).bytes) == "11.0 GiB"
    assert "74.0 GiB kept by the driver (no GPU process lives" in line(found, IN_USE).why


@pytest.mark.parametrize(
    "facts",
    [
        {"gpu_processes": (GpuProcess(1, "x", 70 * GIB),)},
        {"gpu_processes": Unknown("", "x")},
        {"memory": Unknown("", "x")},
        {"memory": memory(9, unexplained=7.6)},
    ],
)
def test_nothing_is_credited_that_may_be_in_use(facts: dict[str, object]) -> None:
    """Guards that pages of a living process, and what any idle machine leaves unexplained, are not called free."""
    assert driver_retained(healthy("spark-1", **({"memory": memory(85, 82)} | facts))) == 0


def test_our_own_running_rank_is_replaced() -> None:
    """Guards that a second `up` with other limits is not refused for the memory of the first."""
    own = (GpuProcess(1, "VLLM", 90 * GIB),)
    found = made(memory=memory(100), gpu_processes=own, ranks=(rank("big"),))
    assert gib(line(found, IN_USE).bytes) == "10.0 GiB"
    assert line(found, IN_USE).why.endswith("- 90.0 GiB of the running big, which is replaced")
    both = (rank("big"), rank("other"))
    assert gib(line(made(memory=memory(100), gpu_processes=own, ranks=both), IN_USE).bytes) == "100.0 GiB"


def test_published_size_where_the_files_are_not_there() -> None:
    """Guards that a checkpoint that is still to be copied counts with its published size."""
    whys = {gib(line(made(checkpoint=c), WEIGHTS).bytes) for c in (ABSENT, None, Unknown("", "x"))}
    assert whys == {"69.4 GiB"}
    assert "model.size of the recipe" in line(made(checkpoint=None), WEIGHTS).why


def test_unfinished_copy_counts_whole() -> None:
    """Guards that half a download is not taken for a small model."""
    half = replace(WHOLE, bytes=GIB, missing=("x (in the index)",))
    assert line(made(checkpoint=half), WEIGHTS).bytes == SIZE // 2


def test_unknown_weights_say_so() -> None:
    """Guards that a missing figure is a line of 0 that is marked, with a KV pool that is not called computed."""
    found = made(replace(RECIPE, model=Model("org/big")), None)
    assert (line(found, WEIGHTS).bytes, line(found, WEIGHTS).origin) == (0, Origin.ASSUMED)
    assert line(found, WEIGHTS).why.startswith("size not known")
    assert line(found, KV_POOL).origin == Origin.ASSUMED and "the weights are a part of it" in line(found, KV_POOL).why
    assert found.unknown == (WEIGHTS,)


def test_what_stays_on_disk_takes_no_memory() -> None:
    """DeepSeek-V4.1-Flash has 189 GiB of Engram tables on each node's disk: counted, four nodes would not hold it."""
    model = replace(RECIPE.model, on_disk=49_000_000_000)
    for checkpoint in (None, WHOLE):
        found = line(made(replace(RECIPE, model=model), checkpoint), WEIGHTS)
        assert found.bytes == (SIZE - 49_000_000_000) // 2
        assert "less 45.6 GiB that stay on disk" in found.why


def test_weights_are_counted_where_no_size_is_given() -> None:
    """As for the table of splits, whose figures would stand beside `not known`; it is marked as an estimate."""
    shape = ModelShape(
        layers=36, heads=32, kv_heads=8, hidden=4096, head_dim=128, vocab=151936, intermediate=12288, format="bf16"
    )
    found = made(replace(RECIPE, model=Model("org/big", shape=shape)), None)
    assert gib(line(found, WEIGHTS).bytes) == "7.6 GiB"  # Qwen3-8B's files have 16.4 GB
    assert (line(found, WEIGHTS).origin, line(found, KV_POOL).origin) == (Origin.ASSUMED, Origin.ASSUMED)
    assert "counted from the model's dimensions" in line(found, WEIGHTS).why and found.unknown == ()
    there = made(replace(RECIPE, model=Model("org/big")), replace(ABSENT, shape=shape))
    assert line(there, WEIGHTS) == line(found, WEIGHTS)
    vague = replace(shape, vocab=0)
    assert made(replace(RECIPE, model=Model("org/big", shape=vague)), None).unknown == (WEIGHTS,)


def test_a_share_of_what_unknown_weights_leave_is_unknown() -> None:
    """TensorRT-LLM's pool is reckoned after loading: a figure without the weights would be made up."""
    engine = replace(RECIPE.engine, name="trtllm")
    assert made(replace(RECIPE, model=Model("org/big"), engine=engine), None).unknown == (WEIGHTS, KV_POOL)


def test_pinned_kv_pool() -> None:
    """Guards that a pool given in bytes is taken as it is."""
    found = made(replace(RECIPE, serving=Serving(memory_fraction=0.8, kv_cache_bytes=12 * GIB)))
    assert (line(found, KV_POOL).bytes, line(found, KV_POOL).why) == (12 * GIB, "pinned by serving.kv_cache_bytes")


def test_ranks_that_share_a_node_are_added_up() -> None:
    """Guards that two ranks on one node take the memory of two."""
    found = made(world=1)
    assert (line(found, WEIGHTS).bytes, gib(line(found, OVERHEAD).bytes)) == (SIZE, "9.0 GiB")


def test_the_twin_takes_nothing() -> None:
    """Guards that a simulated run fits on any machine and says that it is one."""
    found = made(replace(PLAYED, model=replace(PLAYED.model, size=SIZE)), None)
    assert [line(found, name).bytes for name in (WEIGHTS, KV_POOL)] == [0, 0]
    assert "simulated: the twin allocates nothing; a real engine would take 69.4 GiB" in line(found, WEIGHTS).why
    assert "would take 23.4 GiB" in line(found, KV_POOL).why
    assert (gib(line(found, OVERHEAD).bytes), found.claim) == ("0.2 GiB", 0)


def test_llama_cpp_claims_no_share() -> None:
    """Guards that an engine that takes what it needs is not held to a fraction."""
    found = made(CPU, world=1)
    assert (line(found, KV_POOL).bytes, found.claim, gib(line(found, OVERHEAD).bytes)) == (0, 0, "1.0 GiB")


def test_tensorrt_llm_takes_a_share_of_what_is_left() -> None:
    """Its fraction is of what weights leave: held to one of the pool, a recipe with 0.4 would seem not to fit."""
    engine = EngineChoice("trtllm", "1", Runtime.PROCESS)
    found = made(replace(RECIPE, engine=engine, serving=replace(RECIPE.serving, memory_fraction=0.4)))
    rest = TOTAL - sum(line(found, name).bytes for name in (IN_USE, WEIGHTS, OVERHEAD))
    assert (line(found, KV_POOL).bytes, found.claim) == (int(0.4 * rest), 0)


def test_sglangs_fraction_holds_weights_and_kv_pool_only() -> None:
    """Guards that graphs and activations are counted beside --mem-fraction-static, not inside it as vLLM does."""
    found = made(replace(RECIPE, engine=replace(RECIPE.engine, name="sglang")))
    held = line(found, WEIGHTS).bytes + line(found, KV_POOL).bytes
    assert held == int(RECIPE.serving.memory_fraction * TOTAL)
    assert gib(line(found, OVERHEAD).bytes) == "10.0 GiB"
    assert found.left == TOTAL - held - 10 * GIB - 9 * GIB


def test_memory_that_could_not_be_read() -> None:
    """Guards that an unknown pool has no lines that could be held against it."""
    found = made(memory=Unknown("cut off", "/proc/meminfo lacks Cached"))
    assert (found.pool.bytes, found.lines, found.claim, found.fits) == (0, (), 0, True)
    assert found.pool.why == "the node's memory could not be read: /proc/meminfo lacks Cached"

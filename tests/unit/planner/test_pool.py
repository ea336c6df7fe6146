"""The memory of a node, and the part that the next engine can have."""

from dataclasses import replace

import pytest

from sparkwright.domain.facts import Gpu, GpuProcess, Memory, NodeFacts, Unknown
from sparkwright.domain.ledger import KV_POOL, Counts
from sparkwright.domain.units import GIB, MIB, gib
from sparkwright.planner.ledger import ledger
from sparkwright.planner.pool import Pool, driver_retained, memory_pool
from unit.checks.samples import healthy, memory, rank_status
from unit.planner.memory_samples import H200, discrete, gb10_node, model_shape, recipe


def node_pool(facts: NodeFacts, ranks_here: int = 1) -> Pool:
    made = memory_pool(facts, "big", ranks_here)
    assert isinstance(made, Pool)
    return made


def blackwell_node(reserved: int | Unknown) -> NodeFacts:
    """A machine with one GPU of 97,887 MiB by nvidia-smi, of which its driver keeps so many bytes."""
    gpu = Gpu("NVIDIA RTX PRO 6000", "580", "12.0", 97887 * MIB, memory_reserved=reserved)
    return replace(discrete(), gpus=(gpu,))


def test_driver_retained_pages_are_free_for_the_next_engine() -> None:
    """Guards that MemAvailable alone does not decide: it would refuse a launch that works."""
    made = node_pool(healthy("spark-1", memory=memory(used=85, unexplained=82)))
    assert gib(made.used.bytes) == "11.0 GiB"
    assert "74.0 GiB kept by the driver (no GPU process lives" in made.used.why


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
    made = node_pool(healthy("spark-1", memory=memory(100), gpu_processes=own, ranks=(rank_status("big"),)))
    assert gib(made.used.bytes) == "10.0 GiB"
    assert made.used.why.endswith("- 90.0 GiB of the running ranks that are replaced")
    both = healthy("spark-1", memory=memory(100), gpu_processes=own, ranks=(rank_status("big"), rank_status("other")))
    assert gib(node_pool(both).used.bytes) == "100.0 GiB"


def test_a_gpu_with_memory_of_its_own_is_the_pool() -> None:
    """Guards that the machine's memory is not taken for the GPU's where they are two, one rank on each GPU."""
    held = replace(discrete(), gpu_processes=(GpuProcess(1, "x", 4 * GIB), GpuProcess(2, "y", Unknown(""))))
    made = node_pool(held)
    assert (made.total.bytes, made.used.bytes, made.unified) == (H200, 4 * GIB, False)
    assert isinstance(held.gpus, tuple)
    two = replace(held, gpus=held.gpus * 2)
    assert [node_pool(two, ranks).sharing for ranks in (1, 2, 3)] == [1, 1, 2]


def test_what_the_driver_reserves_is_not_the_engines() -> None:
    """Guards that fractions are taken of CUDA's total: 94.97 GiB of the 95.59 that nvidia-smi calls the total."""
    made = node_pool(blackwell_node(637 * MIB))
    assert (made.total.bytes, made.total.low, made.total.high) == (97250 * MIB, None, None)
    assert made.total.why == "memory of the GPU: 95.6 GiB less 0.6 GiB of its driver"


@pytest.mark.parametrize("reserved", [Unknown("[N/A]"), -1 * MIB, 97887 * MIB])
def test_a_driver_that_does_not_say_what_it_reserves_gives_a_range(reserved: int | Unknown) -> None:
    """Guards that the total is no exact figure then, nor is what a fraction of it leaves."""
    here = blackwell_node(reserved)
    total = node_pool(here).total
    assert total.low and total.high and total.low < 97250 * MIB < total.high and total.low < total.bytes < total.high
    for engine in ("vllm 0.33.0", "sglang 0.5.23"):
        made = recipe(model_shape("qwen3-8b"), engine, serving={"memory_fraction": 0.8})
        known, wide = (ledger(made, node, None, 1).line(KV_POOL) for node in (blackwell_node(637 * MIB), here))
        assert known and wide and known.low and known.high and wide.low and wide.high
        assert wide.low < known.low and known.high < wide.high


def test_ranks_share_the_one_pool_of_a_gb10() -> None:
    """Guards that CPU and GPU count as one memory, which all ranks on the node live in."""
    made = node_pool(gb10_node(), 2)
    assert (made.unified, made.sharing) == (True, 2)


def test_memory_that_could_not_be_read() -> None:
    """Guards that an unknown pool stays unknown, with its reason."""
    made = memory_pool(healthy("spark-1", memory=Unknown("cut off", "/proc/meminfo lacks Cached")), "big", 1)
    assert made == Unknown("cut off", "/proc/meminfo lacks Cached")


def test_page_cache_may_stay_in_use_where_an_engine_counts_mem_free() -> None:
    """Guards both ends: `up` evicts model files' pages; what it may not evict CUDA does not see as free."""
    cached = replace(memory(used=20), free=memory().total - 70 * GIB)
    made = memory_pool(healthy("spark-1", memory=cached), "big", 1, Counts.FREE)
    assert isinstance(made, Pool) and made.seen
    assert [gib(size or 0) for size in (made.used.low, made.used.bytes, made.used.high)] == [
        "20.0 GiB",
        "20.0 GiB",
        "70.0 GiB",
    ]
    assert made.seen.counted == cached.free and "counts MemFree" in made.used.why
    other = node_pool(healthy("spark-1", memory=cached))
    assert other.used.high is None and other.seen and other.seen.counted == cached.available


@pytest.mark.parametrize(
    ("engine", "figure"),
    [("vllm 0.21.0", Counts.AVAILABLE), ("sglang 0.5.23", Counts.AVAILABLE), ("sglang 0.5.9", Counts.FREE),
     ("trtllm 1.3.0", Counts.FREE)],
)  # fmt: skip
def test_each_engine_counts_by_its_own_figure(engine: str, figure: Counts) -> None:
    """Guards the verdict: an engine that reads MemFree refuses what another starts with the page cache full."""
    planned = recipe(model_shape("qwen3-8b"), engine, serving={"memory_fraction": 0.8, "context": 8192})
    cached = gb10_node()
    assert isinstance(cached.memory, Memory)
    full = replace(cached, memory=replace(cached.memory, free=20 * GIB))
    made = ledger(planned, full, None, 1)
    assert made.seen and made.seen.counts is figure
    low = made.lines[-1].low or 0
    assert (low < 20 * GIB) is (figure is Counts.FREE)

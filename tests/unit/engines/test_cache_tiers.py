"""Tiers of an engine's KV cache: what its page says of them, and unknown where it says nothing."""

from dataclasses import replace
from pathlib import Path

from sparkwright.domain.live import LiveCacheTier, LiveDiskCache
from sparkwright.domain.recipe import Recipe
from sparkwright.engines.cache_tiers import WORDS, cache_tiers
from sparkwright.engines.catalog import ENGINES
from sparkwright.engines.tables import metric_names
from sparkwright.facts.engine_metrics import figures
from unit.app.scene import recipe

CAPTURES = Path(__file__).resolve().parents[4] / "shared" / "captures"
GIB = 1024**3
# As vLLM 0.33.0 prints them: cached_by_source is recorded, the others are as its wheel defines them.
VLLM = """vllm:external_prefix_cache_queries_total{engine="0",model_name="m"} 4000.0
vllm:external_prefix_cache_hits_total{engine="0",model_name="m"} 1500.0
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="device"} 9000.0
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="host"} 1200.0
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="disk"} 300.0
vllm:kv_offload_cpu_cache_usage_perc{engine="0",model_name="m"} 0.01
vllm:kv_offload_store_bytes_total{engine="0",model_name="m"} 3.221225472e+09
vllm:kv_offload_load_bytes_total{engine="0",model_name="m"} 1.073741824e+09
vllm:kv_offload_tiering_write_bytes_total{engine="0",model_name="m",tier="1:fs"} 2.147483648e+09
vllm:kv_offload_tiering_read_bytes_total{engine="0",model_name="m",tier="1:fs"} 0.0
"""
SGLANG = """sglang:cached_tokens_total{cache_source="device",model_name="m"} 700.0
sglang:cached_tokens_total{cache_source="host",model_name="m"} 500.0
sglang:cached_tokens_total{cache_source="storage",model_name="m"} 90.0
sglang:hicache_host_used_tokens{model_name="m",tp_rank="0"} 31000.0
sglang:hicache_host_total_tokens{model_name="m",tp_rank="0"} 50000.0
sglang:hicache_backup_bytes_total{model_name="m"} 2.147483648e+09
"""


def with_tiers(host: int = 8 * GIB, disk: str = "/data/kv") -> Recipe:
    made = recipe()
    return replace(
        made, serving=replace(made.serving, host_cache=host, disk_cache=disk, disk_cache_size=200 * GIB if disk else 0)
    )


def counted(page: str, engine: str) -> dict[str, float]:
    return figures(page, {word: name for word, name in metric_names(engine).items() if word in WORDS})


def test_words_are_those_of_the_engines() -> None:
    """A word that is renamed must not silently lose a tier."""
    assert {w for name in ENGINES for w in metric_names(name) if w.startswith("tier_")} == WORDS


def test_vllm_tells_hits_by_source_and_what_was_moved() -> None:
    """Guards that its share of blocks pinned by transfers is not taken for how full the tier is."""
    disks = (LiveDiskCache("spark-1", 5 * GIB, 200 * GIB, 9), LiveDiskCache("spark-2", 3 * GIB, 200 * GIB, 9))
    host, disk = cache_tiers(with_tiers(), counted(VLLM, "vllm"), disks)
    assert host == LiveCacheTier("host", 8 * GIB, queried=4000.0, hits=1200.0, written=3.0 * GIB, read=1.0 * GIB)
    assert disk == LiveCacheTier(
        "disk", 200 * GIB, used=8.0 * GIB, queried=4000.0, hits=300.0, written=2.0 * GIB, read=0.0
    )
    assert host.text == (
        "8.0 GiB a node, use unknown; 1,200 of 4,000 prompt tokens found there; 3.0 GiB written, 1.0 GiB read"
    )
    assert disk.text.startswith("8.0 GiB in use, 200.0 GiB a node; 300 of 4,000")


def test_sglang_tells_how_full_its_host_tier_is() -> None:
    """Its counters of a source begin at the first hit: with the tier alone and no line yet, nothing was found."""
    host, disk = cache_tiers(with_tiers(), counted(SGLANG, "sglang"))
    assert (host.part, host.hits, host.written, disk.hits, disk.used) == (0.62, 500.0, 2.0 * GIB, 90.0, None)
    assert host.text == "62 % of 8.0 GiB a node in use; 500 prompt tokens found there; 2.0 GiB written"
    fresh = "".join(line for line in SGLANG.splitlines(True) if "hicache_host" in line)
    (host,) = cache_tiers(with_tiers(disk=""), counted(fresh, "sglang"))
    assert host.hits == 0.0


def test_an_engine_that_tells_nothing_leaves_it_unknown() -> None:
    """llama.cpp's page has no word of its slots' files; what the supervisor restored is known."""
    (disk,) = cache_tiers(with_tiers(0), {}, (LiveDiskCache("spark-1", 4 * GIB, 0, 9),), restored=14_955.0)
    assert disk == LiveCacheTier("disk", 200 * GIB, used=4.0 * GIB, restored=14_955.0)
    assert disk.text == "4.0 GiB in use, 200.0 GiB a node; hits unknown; 14,955 tokens restored after the start"
    (host,) = cache_tiers(with_tiers(disk=""), {})
    assert host.text == "8.0 GiB a node, use unknown; hits unknown"


def test_tiers_that_no_recipe_names_are_shown_once_they_are_used() -> None:
    """LMCache by `flags`, with its own figures on vLLM's page; pages without a connector show no tier."""
    plain = with_tiers(0, "")
    pages = [CAPTURES / name for name in ("vllm-0.21.0-1node/metrics-busy.txt", "vllm-0.32.0-cpu/talk-metrics.txt")]
    for recorded in filter(Path.exists, pages):
        found = counted(recorded.read_text(), "vllm")
        assert found["tier_hits_total"] == 0.0 and cache_tiers(plain, found) == ()
    page = 'lmcache:local_cache_usage{worker_id="0"} 1.073741824e+09\nlmcache:local_storage_usage{worker_id="0"} 0.0\n'
    (host,) = cache_tiers(plain, counted(page, "vllm"))
    assert host == LiveCacheTier("host", used=1.0 * GIB) and host.text == "1.0 GiB in use; hits unknown"


def test_one_source_for_all_is_the_only_tiers() -> None:
    """vLLM 0.21.0 tells no source: the hits of its connector are those of the one tier that it has."""
    page = "vllm:external_prefix_cache_hits_total 70.0\nvllm:external_prefix_cache_queries_total 100.0\n"
    (host,) = cache_tiers(with_tiers(disk=""), counted(page, "vllm"))
    assert host.hits == 70.0
    assert [one.hits for one in cache_tiers(with_tiers(), counted(page, "vllm"))] == [None, None]

"""vLLM's memory: what its versions do with cache, batches and graphs. Read in the wheels 0.19.0 to 0.33.0.

A version between two that were read does as the newer one where a published log shows it, else as the older.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from sparkwright.domain.ledger import COMMUNICATION, GRAPHS, PROCESSES
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import gib
from sparkwright.engines.definitions import read_definition
from sparkwright.engines.disk_cache import OF_HOST
from sparkwright.engines.mxfp4 import padded
from sparkwright.engines.options import amount, flag_value, lmcache, mapping, option_name
from sparkwright.engines.traits import Traits
from sparkwright.engines.traits_data import told_traits
from sparkwright.engines.version import is_since as newer
from sparkwright.engines.version import version

READ = ("0.19.0", "0.20.2", "0.21.0", "0.24.0", "0.26.0", "0.27.1", "0.30.0", "0.33.0")
# The first versions with names of their own; `0.1.dev1` is a build of a source tree without tags, so a recent one.
_UNTAGGED = (0, 10)
# 0.20.2 prints tokens as concurrency x context; before, the blocks of one group, wrong for models with several.
PRINTS_CONTEXTS = (0, 20, 2)
# 0.26.0 counts the tokens of all steps in flight into every window, 0.24.0 does not; since 0.27.1 groups lie over each
# other in a block, so that blocks are what concurrency counts. Published builds of 0.25.2 for GB10 do both, two boots
# of 0.25.1 (Laguna with DFlash) neither, and the pool of one of 0.23.1rc1 (1.43 M tokens of DeepSeek V4) is as small as
# only that makes it; 0.23.0 itself does neither (two boots of one source, to the token as 0.24.0).
_COUNTS_FLIGHT = (0, 25, 2)
_OVERLAYS = (0, 27)
_DID_BEFORE = (((0, 23, 1), (0, 24)), ((0, 25, 2), (0, 26)))  # from, to
PADS_PAGES = (0, 24)  # pages that do not divide are padded; before, the engine did not start
PACKS_BLOCKS = (0, 23)  # DeepSeek V4: a block is as large as its layers of each page size, not the same for all
CHECKS_BLOCKS = (0, 30)  # ... and what a request needs is counted in such blocks; before, in the larger ones of 0.21.0
RESERVES_NULL = (0, 31)  # 0.33.0 keeps the null block out of what it checks
KEEPS_WHOLE = (0, 27)  # windows next to latents whose pages do not go up are kept whole; before, it did not start
# Prefix caching of hybrids is on by default since 0.28 (vllm pull 50991; opt-in in 0.26.0 and 0.27.1: read in the code
# of 0.27.1 and 0.28.0), which since then keeps only the last states ("align"). Before, the history of Mamba-2 states
# was kept ("all") where the model could; who asks for it gets it until 0.33.0.
_CACHES_HYBRIDS = (0, 28)
_KEEPS_LAST_ONLY = (0, 31)
ALIGNS_MLA = (0, 27)  # blocks of MLA hybrids are multiples of 128
_HISTORY = ("mamba1", "mamba2")
# 0.33.0 keeps one more state, of the last block's end inside a long prompt, where the kernels can write it: on sm_12x
# and CUDA 13 those of these kinds, and then blocks are multiples of so many tokens.
_KEEPS_CHECKPOINTS = (0, 31)
_CHECKPOINT_TOKENS = {"gdn": 64, "kda": 16, "mamba2": 1}
# Before, `auto` was the model's own type whatever hf_quant_config.json says (vllm pull 29980; a boot of 0.13.0).
_FOLLOWS_CHECKPOINT = (0, 14)
# Its class has no MLA, and pads values to the width of keys (models/minicpm3.py, 0.33.0; transformers_utils/
# model_arch_config_convertor.py lists the types that have it).
_EXPANDS = ("MiniCPM3ForCausalLM",)
_WITHOUT_CHECKPOINTS = ("OlmoHybrid",)  # Gated DeltaNet of its own, not Qwen's (0.33.0)
# Defaults (batched tokens, sequences) on a GPU with much memory, and on a GB10 since 0.33.0, which calls it a small one
# (engine/arg_utils.py, get_batch_defaults). Before, the size came from NVML, which has none for memory that CPU and GPU
# share: three logs of 0.25.1 on a GB10 say 2048. The larger batch is counted, since a build may read the size.
_LARGE, _SMALL, _SMALL_SINCE = (8192, 1024), (2048, 256), (0, 33)
# Tiles of MXFP4 experts, of hidden and of intermediate width (0.21.0, fused_moe/oracle/mxfp4.py).
_MARLIN, _CUTLASS = (256, 128), (128, 128)


def has_release(recipe: Recipe, wanted: tuple[int, ...]) -> bool:
    """A version that cannot be read, or of a build without tags, counts as new."""
    found = version(recipe)
    return found < _UNTAGGED or found >= wanted


def neighbours(recipe: Recipe, architecture: str) -> tuple[str, ...]:
    """The releases around a version whose code was not read and that can run the model; () for one that was.

    All for one that nobody can read, and for a build of a source tree: it may be of any day.
    """
    without = next((last for last, names in _without().items() if architecture in names), "")
    return tuple(name for name in _around(recipe) if not without or _numbers(name) > _numbers(without))


@cache
def _without() -> Mapping[str, Sequence[str]]:
    """architectures.toml."""
    text = (files("sparkwright.engines.vllm") / "architectures.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(map(int, name.split(".")))


def _around(recipe: Recipe) -> tuple[str, ...]:
    found, read = version(recipe), list(map(_numbers, READ))
    if found < _UNTAGGED:
        return READ
    if found in read:
        return ()
    after = sum(1 for one in read if one < found)
    return READ[max(0, after - 1) : after + 1]


def overlays_groups(recipe: Recipe) -> bool:
    """True if groups of layers overlap in a block."""
    return has_release(recipe, _OVERLAYS) or any(first <= version(recipe) < end for first, end in _DID_BEFORE)


def in_flight(recipe: Recipe) -> int:
    """Tokens that a window holds beyond itself: one step's, or those of all steps that run at once."""
    if not (has_release(recipe, _COUNTS_FLIGHT) or overlays_groups(recipe)):
        return _batched(recipe)
    pp, waits = recipe.parallelism.pp, str(flag_value(recipe, "async-scheduling")).lower() == "false"
    waits = waits or str(flag_value(recipe, "no-async-scheduling")).lower() == "true"
    return _batched(recipe) * (pp if waits or (pp > 1 and not has_release(recipe, RESERVES_NULL)) else pp + 1)


def state_blocks(recipe: Recipe, shape: ModelShape, pages: int) -> int:
    """Blocks of a state group that one sequence holds; pages: of the whole context.

    One state and one for each drafted token; with prefix caching one or two more, or one for each of the pages.
    """
    more = recipe.speculation.tokens if recipe.speculation.method else 0
    if not _caches_prefixes(recipe):
        return 1 + more
    return more + (pages if keeps_history(recipe, shape) else 2 + bool(checkpoint_tokens(recipe, shape)))


def checkpoint_tokens(recipe: Recipe, shape: ModelShape) -> int:
    """The size in tokens whose multiples the kept blocks of states have; 0 if none are kept."""
    keeps = _caches_prefixes(recipe) and has_release(recipe, _KEEPS_CHECKPOINTS)
    keeps = keeps and not shape.architecture.startswith(_WITHOUT_CHECKPOINTS)
    return _CHECKPOINT_TOKENS.get(shape.state_kind, 0) if keeps else 0


def keeps_history(recipe: Recipe, shape: ModelShape) -> bool:
    """True if a state is saved at the end of every block (`all`)."""
    asked = str(flag_value(recipe, "mamba-cache-mode") or "")
    able = shape.state_kind in _HISTORY and not has_release(recipe, _KEEPS_LAST_ONLY) and not recipe.speculation.method
    usual = asked in ("", "none") and not has_release(recipe, _CACHES_HYBRIDS)
    return _caches_prefixes(recipe) and able and (asked == "all" or usual)


def _caches_prefixes(recipe: Recipe) -> bool:
    off, on = flag_value(recipe, "no-enable-prefix-caching"), flag_value(recipe, "enable-prefix-caching")
    if str(off).lower() == "true" or str(on).lower() == "false":
        return False
    return str(on).lower() == "true" or has_release(recipe, _CACHES_HYBRIDS)


def _batched(recipe: Recipe) -> int:
    return recipe.serving.batched_tokens or default_limits(recipe, True)[0]


def smaller_batch(recipe: Recipe) -> int:
    """The default of batched tokens of a build that does not know a GB10's memory; 0 if the batch is known."""
    return 0 if recipe.serving.batched_tokens or newer(recipe, *_SMALL_SINCE) else _SMALL[0]


def default_limits(recipe: Recipe, unified: bool) -> tuple[int, int]:
    """Batched tokens and sequences of a recipe that names none."""
    return _SMALL if unified and newer(recipe, *_SMALL_SINCE) else _LARGE


def second_runner(recipe: Recipe) -> bool:
    """True if Model Runner V2 runs: by its variable, else from 0.30.0 on, for DSpark from 0.27.0 on."""
    asked = str(recipe.env.get("VLLM_USE_V2_MODEL_RUNNER", ""))
    if asked:
        return asked == "1"
    return (recipe.speculation.method == "dspark" and newer(recipe, 0, 27)) or newer(recipe, 0, 30)


def outside(recipe: Recipe) -> tuple[str, ...]:
    """Lines on top of the memory fraction: what starts before the engine measures, and graphs before 0.21.0."""
    # Whether an estimate of the graphs is taken off the KV pool: since 0.21.0 unless its variable changes that.
    asked = str(recipe.env.get("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", ""))
    return (PROCESSES, COMMUNICATION, *(() if (asked == "1" if asked else newer(recipe, 0, 21)) else (GRAPHS,)))


def host_tier(recipe: Recipe, pool: int) -> tuple[float, str]:
    """Bytes a rank of KV offloaded to host memory: of all ranks together by option, of each by connector.

    (config/cache.py and config/vllm.py of 0.26.0.)
    """
    connector = mapping(flag_value(recipe, "kv-transfer-config"))
    size = amount(flag_value(recipe, "kv-offloading-size")) * 2**30 or recipe.serving.host_cache * recipe.nodes
    size = size or amount(mapping(connector.get("kv_connector_extra_config")).get("cpu_bytes_to_use"))
    if size:
        ranks = recipe.parallelism.world_size
        return size / ranks, f"KV offloaded to host memory: {gib(int(size))} over {ranks} ranks"
    if "lmcache" in str(connector.get("kv_connector")).lower():
        return lmcache(recipe), "LMCache's local CPU tier of each rank (LMCACHE_MAX_LOCAL_CPU_SIZE)"
    return 0.0, ""


def no_disk_cache(recipe: Recipe) -> str:
    """The tier of files was read and run in 0.33.0; it writes what leaves the tier in host memory."""
    if not newer(recipe, 0, 33):
        return "its tier of files is known of 0.33.0 and newer"
    if "kv-transfer-config" in map(option_name, recipe.flags):
        return "flags.kv-transfer-config names a connector of its own"
    return "" if recipe.serving.host_cache else OF_HOST


def padded_experts(recipe: Recipe, unified: bool, architecture: str, widths: tuple[int, int]) -> float:
    """Times of experts padded to tiles of the kernels, by the option or by one of its variables, such as
    VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8_CUTLASS."""
    on = (name for name, value in recipe.env.items() if str(value).lower() in ("1", "true"))
    cutlass = "cutlass" in " ".join((str(flag_value(recipe, "moe-backend")), *on)).lower()
    return padded(widths, _CUTLASS if cutlass else _MARLIN)


def _reader(recipe: Recipe) -> str:
    usual = str(flag_value(recipe, "load-format") or "") in ("", "auto", "safetensors", "hf")
    return "eager" if usual and flag_value(recipe, "safetensors-load-strategy") == "eager" else ""


@cache
def vllm_traits(name: str = "vllm") -> Traits:
    """Traits of vLLM, or of an engine that starts it: its own file wins."""
    own = told_traits(read_definition(name))
    return Traits(
        limits=default_limits,
        neighbours=neighbours,
        outside=outside,
        tier=host_tier,
        disk_cache=no_disk_cache,
        experts=padded_experts,
        second_runner=second_runner,
        follows_checkpoint=lambda recipe: has_release(recipe, _FOLLOWS_CHECKPOINT),
        expands=_EXPANDS,
        reader=_reader,
        choose=lambda texts: {"structured_outputs": {"choice": list(texts)}},
        **told_traits(read_definition("vllm")) | own,
    )

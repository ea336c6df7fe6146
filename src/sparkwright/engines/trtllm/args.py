"""trtllm-serve's command line, options file and environment. Read for: see __init__.py.

Its options are click's, spelled with underscores. What it has no option for goes into the file that
`--extra_llm_api_options` names, which overrides the command line; a recipe gives entries of it as a mapping:
`flags: {extra_llm_api_options: {cuda_graph_config: {max_batch_size: 4}}}`.
"""

import json
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from pathlib import PurePosixPath
from typing import Any

from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import Placement, RankFile
from sparkwright.domain.recipe import Recipe, Runtime, Speculation
from sparkwright.engines.definitions import read_definition
from sparkwright.engines.engine import RenderContext, files_at
from sparkwright.engines.environment import OFFLINE, fabric
from sparkwright.engines.findings import ENG
from sparkwright.engines.mounts import HUB_AT, caches, model_word
from sparkwright.engines.options import Options, merge_options, option_text

INTERFACE = "SPARKWRIGHT_INTERFACE"
OPTIONS_FILE = "extra_llm_api_options.yaml"
EXTRA = "extra-llm-api-options"
# Our words for a method (vLLM's) -> decoding_type and the name of its count, as llmapi/llm_args.py has them.
DECODING = {
    "mtp": ("MTP", "num_nextn_predict_layers"),
    "eagle": ("Eagle", "max_draft_len"),
    "eagle3": ("Eagle", "max_draft_len"),
    "ngram": ("NGram", "max_draft_len"),
    "draft_model": ("DraftTarget", "max_draft_len"),
}


def serve_words(recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[str, ...]:
    """`MODEL --options...`: one command line for all ranks, for mpirun starts them all with rank 0's."""
    folder = files_at(recipe, context, placement.head, 0)
    ours = (*read_definition("trtllm").per_rank, EXTRA)
    given = {name: value for name, value in merge_options({}, recipe.flags).items() if name not in ours}
    options = merge_options(_ours(recipe, context), given) | {EXTRA: f"{folder}/{OPTIONS_FILE}"}
    return (_model(recipe, placement.head, context), *_words(options))


def _words(options: Mapping[str, Any]) -> tuple[str, ...]:
    """click's way: `--max_seq_len 4096`, a flag only when it is set, a list as the option repeated."""
    return tuple(word for name, value in options.items() for word in _option(f"--{name.replace('-', '_')}", value))


def _option(name: str, value: Any) -> tuple[str, ...]:
    if value is None or value is False:
        return ()
    if value is True:
        return (name,)
    if isinstance(value, (list, tuple)):
        return tuple(word for item in value for word in (name, option_text(item)))
    return (name, json.dumps(value) if isinstance(value, Mapping) else option_text(value))


def _ours(recipe: Recipe, context: RenderContext) -> Options:
    """Zero and empty mean: leave it to the engine."""
    s, p, said = recipe.serving, recipe.parallelism, recipe.parsers
    return {
        "backend": "pytorch",
        "host": context.bind,
        "port": context.port,
        "tp-size": p.tp if p.tp > 1 else None,
        "pp-size": p.pp if p.pp > 1 else None,
        "ep-size": p.tp if p.ep else None,
        "max-seq-len": s.context or None,
        "max-batch-size": s.sequences or None,
        "max-num-tokens": s.batched_tokens or None,
        "kv-cache-free-gpu-memory-fraction": s.memory_fraction or None,
        "tool-parser": said.tool or None,
        "reasoning-parser": said.reasoning or None,
        "chat-template": said.chat_template or None,
    }


def _model(recipe: Recipe, node: str, context: RenderContext) -> str:
    """A folder, also for a model of the hub: offline, its tokenizer is not found by the hub's name alone."""
    folder = context.models.get(node, "")
    if not (context.from_hub and folder):
        return model_word(recipe, node, context)
    if recipe.engine.runtime is not Runtime.DOCKER:
        return folder
    return f"{HUB_AT}/{PurePosixPath(folder).relative_to(context.paths[node].hub)}"


def options_file(recipe: Recipe) -> RankFile:
    """Our entries below the recipe's: a mapping of both is merged.

    Not JSON: PyYAML, which reads it there, takes JSON's 1e-05 for text.
    """
    import yaml

    # What the recipe has in `flags.extra_llm_api_options`; empty when that is no mapping (a finding reports it).
    given = merge_options({}, recipe.flags).get(EXTRA)
    options = _deep(_file_options(recipe), given if isinstance(given, Mapping) else {})
    return RankFile(OPTIONS_FILE, yaml.safe_dump(options, sort_keys=False, allow_unicode=True))


def _file_options(recipe: Recipe) -> Options:
    options: Options = {"return_perf_metrics": True, "enable_iter_perf_stats": True}
    if recipe.serving.kv_dtype:
        options["kv_cache_config"] = {"dtype": recipe.serving.kv_dtype}
    if recipe.serving.memory_fraction:
        # The file's kv_cache_config takes the place of the one that the command line makes.
        fraction = {"free_gpu_memory_fraction": recipe.serving.memory_fraction}
        options["kv_cache_config"] = options.get("kv_cache_config", {}) | fraction
    if recipe.speculation.method:
        options["speculative_config"] = _speculative(recipe.speculation)
    return options


def _speculative(spec: Speculation) -> Options:
    kind, count = DECODING.get(spec.method, (spec.method, "max_draft_len"))
    return {"decoding_type": kind, **({count: spec.tokens} if spec.tokens else {}), **spec.options}


def _deep(below: Mapping[str, Any], above: Mapping[str, Any]) -> Options:
    merged = dict(below)
    for name, value in above.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = _deep(merged[name], value) if both else value
    return merged


def environment(recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> dict[str, str]:
    """Ours, then the recipe's over it; where MPI finds its peers stays ours."""
    node = placement.nodes[rank]
    # Kernels are compiled at start; Triton's own ptxas does not know sm_121.
    cuda = {"CPATH": "/usr/local/cuda/include", "TRITON_PTXAS_PATH": "/usr/local/cuda/bin/ptxas"}
    ours = {
        **(_many_nodes(placement, node) if placement.world > 1 else {}),
        **OFFLINE,
        **(cuda if recipe.engine.runtime is Runtime.DOCKER else {}),
        **caches(recipe, node, context, read_definition("trtllm").caches),
    }
    mpi = {name: value for name, value in ours.items() if name.startswith("OMPI_")}
    return {**ours, **{k: str(v) for k, v in recipe.env.items()}, **mpi}


def _many_nodes(placement: Placement, node: str) -> dict[str, str]:
    """mpirun hands its own OMPI_ variables to every daemon, so they must be right on all nodes: addresses, no names."""
    # The smallest network that holds them all; Open MPI 4.1 takes a /32 for all interfaces.
    addresses = [placement.fabric[name].address for name in placement.nodes]
    bits = 31
    while len({ip_network(f"{address}/{bits}", strict=False) for address in addresses}) > 1:
        bits -= 1
    network = str(ip_network(f"{addresses[0]}/{bits}", strict=False))
    choice = placement.fabric[node]
    return {
        **{name: value for name, value in fabric(choice).items() if not name.startswith("OMPI_")},
        INTERFACE: choice.interface,  # becomes OMPI_MCA_btl_tcp_if_include on this node: else MPI takes docker0
        "OMPI_MCA_oob_tcp_if_include": network,  # daemons meet over the fabric; names differ per node
        "OMPI_ALLOW_RUN_AS_ROOT": "1",  # the image's user is root, inside its container
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def check_trtllm(recipe: Recipe) -> Iterator[Finding]:
    serving, p, method = recipe.serving, recipe.parallelism, recipe.speculation.method
    # Its server checks no key, neither as an option nor in a middleware (serve/openai_server.py).
    if serving.api_key_env:
        yield ENG["ENG021"].on("serving", f"serving.api_key_env: {serving.api_key_env}")
    if p.dp > 1:
        yield ENG["ENG022"].on(
            "parallelism.dp",
            f"dp: {p.dp}",
            title="trtllm-serve has no data-parallel replicas",
            cause="its ranks are tp_size x pp_size; attention can be split by requests inside tp",
            fix=f"tp: {p.tp * p.dp}, and flags: {{extra_llm_api_options: {{enable_attention_dp: true}}}}",
        )
    given = merge_options({}, recipe.flags).get(EXTRA, {})
    if not isinstance(given, Mapping):
        yield ENG["ENG022"].on(
            f"flags.{EXTRA}",
            f"extra_llm_api_options: {given}",
            title="the file of extra options is written by sparkwright",
            cause="a path in a recipe does not show what the file holds on each node",
            fix="give the file's content as a mapping: extra_llm_api_options: {cuda_graph_config: {...}}",
        )
    if method and method not in DECODING and "decoding_type" not in recipe.speculation.options:
        yield ENG["ENG022"].on(
            "speculation.method",
            f"method: {method}",
            title=f"TensorRT-LLM has no speculation method {method!r}",
            cause="",
            fix=f"one of {', '.join(DECODING)}, or its own name as speculation.options.decoding_type",
        )
    # Seen with `ss` under Open MPI 4.1.4; there is no option for the address to listen on.
    if recipe.nodes > 1:
        ports = "mpirun and orted: ports of the system's choice on 0.0.0.0 and [::], while the job runs"
        yield ENG["ENG032"].on("nodes", ports)

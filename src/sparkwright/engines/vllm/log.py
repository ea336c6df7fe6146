"""vLLM's log, as 0.21.0 writes it: checked against our recordings in tests/data/captures_logs.

Facts that lines give: version, fraction, context, nccl, world, model, checkpoint_gib, weights_gib, load_seconds,
read_seconds, compile_seconds, kv_gib, kv_tokens, max_concurrency, graphs_gib, graphs_estimate_gib, init_seconds, url;
where VLLM_LOGGING_LEVEL is DEBUG also total_gib, activations_gib, other_gib (wheels 0.19.0 to 0.33.0). The phase of an
error or of a mere sign of life does not count; phases only go forward.
"""

import re

from sparkwright.domain.deployment import LogEvent, Phase
from sparkwright.engines.dialect import Dialect, LineRule, rule

_N = r"[\d.,]+"
_BEGINS = re.compile(r"\((?:APIServer|ApiServer|EngineCore|Worker|DPCoordinator)\w* pid=\d+\) ")
_PREFIX = re.compile(
    r"(?:\(\w+ pid=\d+\) ?)?(?:(?:INFO|WARNING|ERROR|CRITICAL|DEBUG)(?: \d\d-\d\d \d\d:\d\d:\d\d \[[^\]]*\] ?|: +))?"
)
_BARS = (
    (re.compile(r"^Capturing CUDA graphs?"), Phase.GRAPHS, "graphs"),
    (re.compile(r"DeepGEMM warmup|[Aa]utotun|AutoTuner|[Ww]arm"), Phase.WARMUP, "kernels"),
    (re.compile(r"^Fetching \d+ files"), Phase.DOWNLOAD, "files"),
    (re.compile(r"\.(?:safetensors|bin|gguf|json)\b|^Download"), Phase.DOWNLOAD, "bytes"),
    (re.compile(r"^Loading|shards"), Phase.LOAD, "shards"),
)
_START: tuple[LineRule, ...] = (
    rule(Phase.START, r"(?:[█▄▀]|API server) +version (?P<v>\S+)$", "vLLM {v}", facts={"version": "v"}),
    rule(
        Phase.START,
        rf"^non-default args: .*'gpu_memory_utilization': (?P<f>{_N})",
        "memory fraction {f}",
        facts={"fraction": "f"},
    ),
    rule(Phase.START, r"^Resolved architecture: (?P<a>\w+)", "model {a}"),
    rule(Phase.START, r"^Using max model len (?P<n>\d+)", "context {n}", facts={"context": "n"}),
    rule(Phase.START, r"^Initializing a V1 LLM engine \(v(?P<v>[^)]+)\)", "engine core starts", facts={"version": "v"}),
)
_RENDEZVOUS = (
    rule(Phase.RENDEZVOUS, r"^Launching vLLM \(v(?P<v>[^)]+)\) headless.*head node address (?P<a>\S+) for",
         "worker waits for the head at {a}", facts={"version": "v"}),
    rule(Phase.RENDEZVOUS, r"^DP group leader: .*master_addr=(?P<a>[^,]+),", "head starts its workers"),
    rule(Phase.RENDEZVOUS, r"^world_size=(?P<w>\d+) rank=(?P<r>\d+) .*distributed_init_method=(?P<m>\S+) ",
         "rank {r} of {w} calls {m}", facts={"world": "w"}),
    rule(Phase.RENDEZVOUS, r"^vLLM is using nccl==(?P<n>\S+)", "NCCL {n} connects", facts={"nccl": "n"}),
)  # fmt: skip
_LOAD = (
    rule(Phase.RENDEZVOUS, rf"^worker init memory snapshot: .*total_memory=(?P<t>{_N})GiB", "{t} GiB of memory",
         facts={"total_gib": "t"}),
    # From here on all ranks have met. A worker prints nothing more until its weights are loaded.
    rule(Phase.LOAD, r"^rank (?P<r>\d+) in world size (?P<w>\d+) is assigned", "all {w} ranks joined"),
    rule(Phase.DOWNLOAD, rf"^Time spent downloading weights for .*: (?P<s>{_N}) seconds", "downloaded in {s} s"),
    rule(Phase.LOAD, r"^Starting to load model (?P<m>\S+?)\.*$", "loading {m}", facts={"model": "m"}),
    rule(Phase.LOAD, rf"Checkpoint size: (?P<g>{_N}) GiB", "checkpoint of {g} GiB", facts={"checkpoint_gib": "g"},
         total="g", unit="GiB"),
    rule(Phase.LOAD, r"^Prefetching checkpoint files: \d+% \((?P<d>\d+)/(?P<t>\d+)\)", "reading ahead",
         done="d", total="t", unit="files"),
    rule(Phase.LOAD, rf"^Loading weights took (?P<s>{_N}) seconds", "read in {s} s", facts={"read_seconds": "s"}),
    rule(Phase.LOAD, rf"^Model loading took (?P<g>{_N}) GiB memory and (?P<s>{_N}) seconds", "{g} GiB loaded",
         facts={"weights_gib": "g", "load_seconds": "s"}, done="g", total="g", unit="GiB"),
    rule(Phase.LOAD, r"^Loading drafter model", "loading the drafter"),
)  # fmt: skip
_COMPILE = (
    rule(Phase.COMPILE, r"^Using cache directory: \S+ for vLLM's torch.compile", "torch.compile starts"),
    rule(Phase.COMPILE, rf"^Dynamo bytecode transform time: (?P<s>{_N}) s", "bytecode transformed in {s} s"),
    rule(Phase.COMPILE, r"^(?:Cache the graph|Directly load (?:the compiled|AOT)|saved AOT|Saved compiler)", ""),
    rule(Phase.COMPILE, rf"^Compiling a graph for compile range (?P<r>.+) takes (?P<s>{_N}) s", "graph {r} in {s} s"),
    rule(
        Phase.COMPILE,
        rf"^torch.compile took (?P<s>{_N}) s in total",
        "compiled in {s} s",
        facts={"compile_seconds": "s"},
    ),
)
_WARMUP = (
    rule(Phase.WARMUP, rf"^Initial profiling/warmup run took (?P<s>{_N}) s", "profiled in {s} s"),
    rule(Phase.WARMUP, r"^Profiling CUDA graph memory", "measuring graph memory"),
    rule(Phase.WARMUP, rf"^Estimated CUDA graph memory: (?P<g>{_N}) GiB", "graphs will take {g} GiB",
         facts={"graphs_estimate_gib": "g"}),
    rule(Phase.WARMUP, r"TileLang (?P<w>begins|completes) to compile kernel `(?P<k>\w+)`", "TileLang {w} {k}"),
    rule(Phase.WARMUP, rf"^Memory profiling takes .*torch peak memory increase: (?P<a>{_N})GiB;"
         rf"(?: non-torch forward increase memory: (?P<o>{_N})GiB)?", "activations of {a} GiB",
         facts={"activations_gib": "a", "other_gib": "o"}),
    rule(Phase.WARMUP, rf"^Available KV cache memory: (?P<g>-?{_N}) GiB", "{g} GiB for the KV cache",
         facts={"kv_gib": "g"}),
    rule(Phase.WARMUP, rf"reserved (?P<g>{_N}) GiB memory for KV Cache as specified by kv_cache_memory_bytes",
         "{g} GiB for the KV cache, as given", facts={"kv_gib": "g"}),
    rule(Phase.WARMUP, rf"^GPU KV cache size: (?P<n>{_N}) tokens", "KV cache of {n} tokens", facts={"kv_tokens": "n"}),
    rule(Phase.WARMUP, rf"^Maximum concurrency for (?P<c>{_N}) tokens per request: (?P<x>{_N})x",
         "{x} requests of {c} tokens at once", facts={"max_concurrency": "x", "context": "c"}),
    rule(Phase.WARMUP, r"^(?:Skipping|Running|Warming up) FlashInfer|^Compile and warming up|AutoTuner", ""),
    # Slow, not stuck: four of these came during a DeepGEMM warm-up that ended well.
    rule(Phase.START, r"^No available shared memory broadcast block found", "a rank is busy", alive=True),
)  # fmt: skip
_GRAPHS = (
    rule(Phase.GRAPHS, rf"^Graph capturing finished in (?P<s>{_N}) secs, took (?P<g>{_N}) GiB", "captured in {s} s",
         facts={"graphs_gib": "g"}),
)  # fmt: skip
_SERVER = (
    # The last line of a worker: from here on it is silent although all is well.
    rule(Phase.SERVER, r"^Kernel JIT monitor activated", "rank is warm"),
    rule(Phase.SERVER, rf"^init engine \(.*\) took (?P<s>{_N}) s", "engine up in {s} s", facts={"init_seconds": "s"}),
    rule(Phase.SERVER, r"^Supported tasks: ", "server starts"),
    rule(Phase.SERVER, r"^Starting vLLM server on (?P<u>\S+)", "server at {u}", facts={"url": "u"}),
    rule(Phase.SERVER, r"^Started server process|^Waiting for application startup", ""),
    rule(Phase.SERVER, r"^Application startup complete", "server is up", ready=True),
)
_RULES = (*_START, *_RENDEZVOUS, *_LOAD, *_COMPILE, *_WARMUP, *_GRAPHS, *_SERVER)
_HEADLINE = re.compile(
    r"^(?:EngineCore (?:failed to start|encountered a fatal error)|WorkerProc (?:hit an exception|failed)|"
    r"Worker proc \S+ died unexpectedly|AsyncLLM output_handler failed)"
)
_REFUSED = re.compile(r"^\S+(?: serve)?: error: |^\s+Value error, ")
# A request that was wrong is answered with 400; the engine is well.
_OF_A_REQUEST = re.compile(r"VLLMValidationError|RequestValidationError")


_DIALECT = Dialect(_BEGINS, _PREFIX, _BARS, _RULES, (_HEADLINE, _REFUSED), _OF_A_REQUEST)


def read_vllm(line: str) -> LogEvent | None:
    return _DIALECT.read(line)

"""SGLang's log, as 0.5.10 to 0.5.23 write it (srt/model_executor, srt/managers/scheduler.py, srt/entrypoints).

A line is `[2026-05-12 10:11:12 TP0] text`; ranks have their parallel places behind the time. Facts: weights_gib,
load_seconds, kv_gib, kv_tokens, context, max_concurrency, graphs_gib, url. A draft model and each pool (full, sliding
window, state) have lines of their own: their GiB are added up.
"""

import re

from sparkwright.domain.deployment import LogEvent, Phase
from sparkwright.engines.dialect import Dialect, rule

_N = r"[\d.]+"
_STAMP = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
_PLACES = r"(?: [A-Z]+\d+)*"
_BEGINS = re.compile(rf"{_STAMP}{_PLACES}\] ")
_PREFIX = re.compile(rf"(?:{_STAMP}(?P<who>{_PLACES})\] )?(?:(?:INFO|WARNING|ERROR|CRITICAL): +)?")
_BARS = (
    (re.compile(r"^Capturing (?:batches|num tokens)"), Phase.GRAPHS, "graphs"),
    (re.compile(r"[Aa]utotun|warmup|DeepGEMM|Compil"), Phase.WARMUP, "kernels"),
    (re.compile(r"^Fetching \d+ files|^Download"), Phase.DOWNLOAD, "files"),
    (re.compile(r"[Ll]oading|shards"), Phase.LOAD, "shards"),
)
_LOAD = (
    rule(Phase.START, r"^(?P<s>server_args)=", "server arguments read", facts={"start": "s"}),
    rule(Phase.RENDEZVOUS, r"^Init torch distributed begin", "ranks meet"),
    rule(Phase.LOAD, rf"^Init torch distributed ends?\. elapsed=(?P<s>{_N}) s", "all ranks joined after {s} s"),
    rule(Phase.LOAD, r"^Load weight begin", "loading weights"),
    rule(Phase.LOAD, rf"^Load weight end\. elapsed=(?P<s>{_N}) s.* mem usage=(?P<g>{_N}) GB",
         "{g} GiB loaded in {s} s", facts={"weights_gib+": "g", "load_seconds": "s"}, done="g", total="g", unit="GiB"),
    rule(Phase.LOAD, r"^Load weight end\.", "weights loaded"),
)  # fmt: skip
_WARM = (
    rule(Phase.WARMUP, rf"\bKV Cache is allocated\..*#tokens: (?P<n>\d+), (?:K size: (?P<k>{_N}) GB, V|KV) "
         rf"size: (?P<v>{_N}) GB", "KV cache of {n} tokens",
         facts={"kv_tokens": "n", "kv_gib+k": "k", "kv_gib+v": "v"}),
    # Only a reservation of addresses: what is behind them is told after the graphs are captured.
    rule(Phase.WARMUP, r"KV Cache VA upper bound\..*#tokens: (?P<n>\d+)", "KV cache of up to {n} tokens"),
    rule(Phase.WARMUP, rf"^Mamba Cache is allocated\..* conv_state size: (?P<c>{_N})GB, ssm_state size: (?P<s>{_N})GB"
         rf"(?: +intermediate_ssm_state_cache size: (?P<i>{_N})GB)?(?: +intermediate_conv_window_cache size: "
         rf"(?P<w>{_N})GB)?", "states take {c} and {s} GiB",
         facts={"kv_gib+c": "c", "kv_gib+s": "s", "kv_gib+i": "i", "kv_gib+w": "w"}),
    rule(Phase.WARMUP, r"Cache is allocated|^Memory pool end", "cache allocated"),
    rule(Phase.WARMUP, rf"^Post-capture KV sizing: (?:draft )?KV cache allocated.*#tokens: (?P<n>\d+), KV size: "
         rf"(?P<g>{_N}) GB", "KV cache of {n} tokens", facts={"kv_tokens": "n", "kv_gib+g": "g"}),
)  # fmt: skip
_GRAPHS = (
    rule(Phase.GRAPHS, r"^Capture .*(?:graph|Graph)s? begin", "graph capture begins"),
    rule(Phase.GRAPHS, rf"^Capture .*(?:graph|Graph)s? end\..*?elapsed[:=] ?(?P<s>{_N}) s.*mem usage=(?P<g>-?{_N})",
         "captured in {s} s", facts={"graphs_gib+": "g"}),
)  # fmt: skip
_SERVER = (
    # The last line that every rank prints: from here on a worker is silent although all is well.
    rule(Phase.SERVER, r"^max_total_num_tokens=(?P<n>\d+).* max_running_requests=(?P<r>\d+), context_len=(?P<c>\d+)",
         "room for {n} tokens, {r} requests of up to {c}",
         facts={"kv_tokens": "n", "max_concurrency": "r", "context": "c"}),
    rule(Phase.SERVER, r"^Uvicorn running on (?P<u>http\S+)", "server at {u}", facts={"url": "u"}),
    rule(Phase.SERVER, r"^Started server process|^Waiting for application|^Application startup complete", ""),
    rule(Phase.SERVER, r"^Dummy health check server started", "rank is warm"),
    rule(Phase.SERVER, r"^The server is fired up and ready to roll", "server is up", ready=True),
    # Only the scheduler of a server that works prints these; a start that is followed late shows nothing else.
    rule(Phase.SERVER, r"^(?:Prefill|Decode) batch", "works", alive=True),
)  # fmt: skip
_RULES = (*_LOAD, *_WARM, *_GRAPHS, *_SERVER)
_HEADLINE = re.compile(
    r"^(?:Scheduler hit an exception|DataParallelController hit an exception|TokenizerManager hit an exception|"
    r"Initialization failed|Rank \d+ scheduler (?:is dead|died)|.*[Ww]atchdog timeout|"
    r"Received sigquit from a child process)"
)
_REFUSED = re.compile(r"^\S+(?: serve)?: error: ")
# A request that was wrong is answered with 400; the engine is well.
_OF_A_REQUEST = re.compile(r"RequestValidationError|ValidationException")


_DIALECT = Dialect(_BEGINS, _PREFIX, _BARS, _RULES, (_HEADLINE, _REFUSED), _OF_A_REQUEST)


def read_sglang(line: str) -> LogEvent | None:
    return _DIALECT.read(line)

"""llama-server's log, as the server in the xllamacpp wheel 2026.10.11549 and older builds (field guide C5) write it.

A line is `0.00.009.517 I srv          init: listening on http://...`: uptime, level, component, function, text; without
`--log-prefix` only the text. Facts: kv_tokens (context of all slots), context (of one), max_concurrency, weights_mib,
kv_mib, url. Every device and cache has a line of its own: MiB of this node are added up, those that RPC
workers hold are not.
"""

import re

from sparkwright.domain.deployment import LogEvent, Phase
from sparkwright.engines.dialect import first, most_telling, pieces, says

_PREFIX = re.compile(r"(?:\d+\.\d\d\.\d{3}\.\d{3} )?(?:(?P<level>[DIWE]) )?")
_NEVER = re.compile(r"(?!x)x")
_RULES = (
    says(Phase.SERVER, r"(?:server is )?listening on (?P<u>http\S+)", "server at {u}", facts={"url": "u"}, ready=True),
    says(Phase.SERVER, r"all slots are idle", "server is idle", ready=True),
    says(Phase.START, r"build_info: (?P<b>\S+)", "", facts={"start": "b", "version": "b"}),
    says(Phase.START, r"initializing \.\.\.|main: loading model$", ""),
    says(Phase.LOAD, r"load_model: loading model '(?P<m>[^']+)'", "loading {m}"),
    says(Phase.LOAD, r"init: loading model", "loading"),
    says(Phase.LOAD, r"^(?!.* RPC).* model buffer size = +(?P<m>[\d.]+) MiB", "{m} MiB of weights",
         facts={"weights_mib+": "m"}),
    says(Phase.LOAD, r"^(?:llama_model_loader|print_info|load_tensors|llama_prepare_model_devices)\b", ""),
    says(Phase.LOAD, r"^\.{3,}$", "reading weights"),
    says(Phase.WARMUP, r"n_slots = (?P<n>\d+), n_ctx_slot = (?P<c>\d+)", "{n} slots of {c} tokens",
         facts={"max_concurrency": "n", "context": "c"}),
    says(Phase.WARMUP, r"^(?!.* RPC).* (?:KV|RS) buffer size = +(?P<m>[\d.]+) MiB", "KV cache of {m} MiB",
         facts={"kv_mib+": "m"}),
    says(Phase.WARMUP, r"llama_context: n_ctx +=+ (?P<n>\d+)", "context of {n} tokens", facts={"kv_tokens": "n"}),
    says(Phase.WARMUP, r"warming up the model|llama threadpool init|llama_context: ", ""),
    says(Phase.SERVER, r"(?:init|main|llama_server): model loaded", "model loaded"),
    # A worker's last word of start-up: how far the model is loaded, only the head tells.
    says(Phase.SERVER, r"^Starting RPC server v(?P<v>\S+)", "RPC {v}: lends its devices", facts={"rpc": "v"}),
    says(Phase.SERVER, r"^  endpoint +: (?P<a>\S+)$", "lends its devices at {a}"),
    says(Phase.SERVER, r"^(?:Accepted client connection|Client connection closed)$", "", alive=True),
)  # fmt: skip
_ERROR = re.compile(
    r"error loading model|failed to load model|failed to fit params|couldn't bind|unable to allocate|out of memory|"
    r"error: invalid argument|^error: |exiting due to|GGML_ASSERT|^Traceback|^[\w.]+Error: |"
    r"Remote RPC server crashed|RPC server version mismatch|: Failed to connect to \S+|Failed to create server socket|"
    r"RPC not supported in this build"
)


def read_llama_cpp(line: str) -> LogEvent | None:
    return most_telling(e for piece in pieces(line, _NEVER) if (e := _piece(piece)))


def _piece(piece: str) -> LogEvent | None:
    prefix = _PREFIX.match(piece)
    body = piece[prefix.end() :] if prefix else piece
    level = prefix["level"] if prefix else None
    if level == "E" or _ERROR.search(body):
        return LogEvent(Phase.START, body.strip()[:500], error=True)
    return first(_RULES, body)

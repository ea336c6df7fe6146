"""trtllm-serve's log under mpirun, from published sources and logs of 1.0 to 1.3, and our launcher's own lines.

A line is `[12/20/2025-04:21:10] [TRT-LLM] [RANK 0] [I] text` (Python), `[TensorRT-LLM][INFO] text` (C++), uvicorn's, a
tqdm bar, or `mpi: text` (launchers/mpi_launch.py). A worker's log ends with the agent's words: its ranks speak in rank
0's log, so that line counts as the last phase. Facts: version, weights_gib (what it prints as GB is divided by 2^30),
kv_gib, kv_tokens, context, max_concurrency, url.
"""

import re

from sparkwright.domain.deployment import LogEvent, Phase
from sparkwright.engines.dialect import EXCEPTION, first, most_telling, pieces, progress, says

_N = r"[\d.,]+"
_BEGINS = re.compile(r"\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \[TRT-LLM\]|\[TensorRT-LLM\]\[\w+\]")
_PREFIX = re.compile(
    r"(?:\[[\d/:-]+\] )?\[TRT-LLM\](?: \[(?:RANK|MPI_Rank) \d+\])? \[(?P<level>[FEWIV])\] "
    r"|\[TensorRT-LLM\]\[(?P<cpp>\w+)\] (?:\[RANK \d+\] )?|(?:INFO|WARNING|ERROR): +"
)
_BARS = ((re.compile(r"[Ll]oading .*weights|^Loading"), Phase.LOAD, "modules"),)
_RULES = (
    says(Phase.RENDEZVOUS, r"^mpi: agent waits for the head on (?P<a>\S+)", "agent waits for the head on {a}"),
    says(Phase.SERVER, r"^mpi: agent joined: (?P<a>\S+) starts", "joined; this rank speaks in the log of rank 0"),
    says(Phase.RENDEZVOUS, r"^mpi: daemon starts on (?P<a>\S+)", "rank on {a} joins"),
    says(Phase.RENDEZVOUS, r"^[Rr]ank\d+ run mgmn (?P<r>leader|worker) node with mpi_world_size: (?P<w>\d+)",
         "{r} of {w} ranks", facts={"world": "w"}),
    says(Phase.START, r"^\[TensorRT-LLM\] TensorRT[- ]LLM version: (?P<v>\S+)", "TensorRT-LLM {v}",
         facts={"version": "v"}),
    says(Phase.START, r"^(?:Starting TensorRT-LLM init|TensorRT-LLM inited|Using LLM with (?P<b>\w+) backend)", ""),
    says(Phase.LOAD, r"^Prefetching (?P<w>\S+) ", "reading ahead {w}"),
    says(Phase.LOAD, rf"^Us(?:e|ing) (?P<g>{_N}) GB for model weights", "{g} GB of weights",
         facts={"weights_gib": "g"}),
    says(Phase.WARMUP, rf"^Model init total -- (?P<s>{_N})s", "model in {s} s", facts={"load_seconds": "s"}),
    says(Phase.WARMUP, rf"Allocated (?P<g>{_N}) GiB for max tokens in paged KV cache \((?P<n>\d+)\)",
         "KV cache of {n} tokens", facts={"kv_gib": "g", "kv_tokens": "n"}),
    says(Phase.WARMUP, r"^max_seq_len=(?P<c>\d+), .*max_batch_size=(?P<b>\d+)", "{b} requests of {c} tokens",
         facts={"context": "c", "max_concurrency": "b"}),
    says(Phase.WARMUP, r"^(?:Running autotuner warmup|Run warmup with|\[Autotuner\])", ""),
    says(Phase.GRAPHS, r"^Creating CUDA graph instances for (?P<n>\d+) batch sizes", "{n} graphs"),
    says(Phase.GRAPHS, r"CUDA graph warmup for batch size=(?P<n>\d+)", "graph for batch size {n}"),
    says(Phase.SERVER, r"^(?:Setting PyTorch memory fraction|Started server process|Waiting for application)", ""),
    says(Phase.SERVER, r"^Uvicorn running on (?P<u>http\S+)", "server at {u}", facts={"url": "u"}, ready=True),
    says(Phase.SERVER, r"^Application startup complete", "server is up", ready=True),
)  # fmt: skip
_HEADLINE = re.compile(
    r"^mpi: (?:agent(?: on \S+)?: (?:refused|something|no head|the head is gone|\S+ cannot)|agent on \S+ is gone|"
    r"rank on \S+ cannot be reached|agent refused|SPARKWRIGHT_LAUNCH_KEY)"
    r"|^(?:MPI_ABORT was invoked|ORTE was unable|ORTE has lost communication|Primary job +terminated)"
    r"|mpirun (?:noticed that process|was unable to)|A process or daemon was unable to complete a TCP connection"
    r"|^[Rr]ank\d+ Task exit code: [1-9]|Failed to initialize executor|^Usage: trtllm-serve|^Error: "
)


def read_trtllm(line: str) -> LogEvent | None:
    return most_telling(e for piece in pieces(line, _BEGINS) if (e := _piece(piece)))


def _piece(piece: str) -> LogEvent | None:
    prefix = _PREFIX.match(piece)
    body = piece[prefix.end() :] if prefix else piece
    if _is_error(body, prefix):
        return LogEvent(Phase.START, body.strip()[:500], error=True)
    return progress(_BARS, body) or first(_RULES, body)


def _is_error(body: str, prefix: re.Match[str] | None) -> bool:
    """Its own E and F lines count; C++ ERROR lines do not: a healthy start has some (multicast on one GPU)."""
    loud = prefix is not None and (prefix["level"] or "I") in "EF"
    return loud or bool(_HEADLINE.search(body) or EXCEPTION.match(body))

"""TensorRT-LLM: `trtllm-serve MODEL ...` on one node, `trtllm-llmapi-launch trtllm-serve MODEL ...` under mpirun.

Read from the 1.3.0 release candidates' sources (commands/serve.py, llmapi/trtllm-llmapi-launch, logger.py,
metrics/collector.py, _torch/pyexecutor) and from logs that users published. The ranks are started by the real mpirun
and know themselves from its variables; their own link represents what MPI carries.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simulators import console
from simulators.life import Head, run_worker
from simulators.site import SimulatedSite
from sparkwright.simulator.asked import json_response
from sparkwright.simulator.ledger import capture_sizes
from sparkwright.simulator.link import Frame
from sparkwright.simulator.link import HeadLink as Ranks
from sparkwright.simulator.log import LineForm
from sparkwright.simulator.phases import Bar
from sparkwright.simulator.rank import SimulatedRank, StartFailed
from sparkwright.simulator.service import Core

VERSION = "1.3.0rc"
LOOPBACK = "127.0.0.1"
PORT = 29_600
"""Of the link in place of MPI's messages."""
USAGE = "Usage: trtllm-serve serve [OPTIONS] MODEL\nTry 'trtllm-serve serve --help' for help.\n\nError: {}\n"
METRICS: Mapping[str, str] = {
    "trtllm_num_requests_running": "vllm:num_requests_running",
    "trtllm_num_requests_waiting": "vllm:num_requests_waiting",
    "trtllm_kv_cache_utilization": "vllm:kv_cache_usage_perc",
    "trtllm_request_success_total": "vllm:request_success_total",
    "trtllm_prompt_tokens_total": "vllm:prompt_tokens_total",
    "trtllm_generation_tokens_total": "vllm:generation_tokens_total",
    "trtllm_prompt_cached_tokens_total": "vllm:prompt_tokens_cached_total",
    "trtllm_spec_decode_num_draft_tokens_total": "vllm:spec_decode_num_draft_tokens_total",
    "trtllm_spec_decode_num_accepted_tokens_total": "vllm:spec_decode_num_accepted_tokens_total",
    "trtllm_time_to_first_token_seconds": "vllm:time_to_first_token_seconds",
    "trtllm_e2e_request_latency_seconds": "vllm:e2e_request_latency_seconds",
}


def launch(argv: list[str], env: Mapping[str, str]) -> int:
    """trtllm-llmapi-launch: rank 0 serves, the others work for it. Raises NoStart."""
    number, world = int(env.get("OMPI_COMM_WORLD_RANK", 0)), int(env.get("OMPI_COMM_WORLD_SIZE", 1))
    role = "leader" if number == 0 else "worker"
    sys.stderr.write(f"mpi_rank: {number}\ntllm_mpi_size: {world}\n")
    sys.stderr.write(f"rank{number} run mgmn {role} node with mpi_world_size: {world} ...\n")
    sys.stderr.flush()
    return run(argv[1:], env, (number, world))


def run(argv: list[str], env: Mapping[str, str], place: tuple[int, int] = (0, 1)) -> int:
    """place: this rank and how many there are. Raises NoStart and, for a refused command line, SystemExit(2)."""
    own = console.settings(env)
    version = own.version or VERSION
    given = _given(argv, version)
    if place[0] > 0:
        given.config = None  # only rank 0 runs the command, and hands to the others what it read
    args = _canonical(given, place, env)
    rank = console.make_rank(args, own, _form(place))
    dialect = TrtllmDialect(version, given.config)
    if rank.limits.world > place[1]:
        raise console.NoStart(f"RuntimeError: world size {rank.limits.world} is more than the {place[1]} ranks of MPI")
    if place[0] > 0:
        return asyncio.run(run_worker(rank, dialect, args.master_addr, PORT))
    link = Ranks(place[1])

    async def meet() -> None:
        await link.listen(args.master_addr, PORT)
        await link.all_joined()

    return asyncio.run(Head(rank, dialect, link, meet, f"TensorRT-LLM {version}").run())


def _given(argv: list[str], version: str) -> Namespace:
    parser = console.parser("trtllm-serve", f"trtllm-{version}", USAGE, allow_abbrev=False)
    parser.add_argument("model")
    given, unknown = parser.parse_known_args(argv[1:] if argv[:1] == ["serve"] else argv)
    if unknown:
        parser.error(f"No such option: {unknown[0]}")
    return given


def _canonical(given: Namespace, place: tuple[int, int], env: Mapping[str, str]) -> Namespace:
    extra = _extra(given.config)
    cache = extra.get("kv_cache_config", {})
    return console.canonical(
        given.model,
        served_model_name=[Path(given.model).name],
        any_name=True,
        host=given.host,
        port=given.port,
        tensor_parallel_size=extra.get("tensor_parallel_size", given.tensor_parallel_size),
        pipeline_parallel_size=extra.get("pipeline_parallel_size", given.pipeline_parallel_size),
        nnodes=place[1],
        node_rank=place[0],
        master_addr=_head(env),
        max_model_len=extra.get("max_seq_len", given.max_seq_len),
        max_num_seqs=extra.get("max_batch_size", given.max_batch_size),
        max_num_batched_tokens=extra.get("max_num_tokens", given.max_num_tokens),
        # a share of what is free once the weights are there, not of all
        gpu_memory_utilization=cache.get("free_gpu_memory_fraction", given.free_gpu_memory_fraction),
        enable_prefix_caching=cache.get("enable_block_reuse", True),
        enforce_eager="cuda_graph_config" in extra and extra["cuda_graph_config"] is None,
        reasoning_parser=given.reasoning_parser,
        tool_call_parser=given.tool_parser,
        enable_auto_tool_choice=bool(given.tool_parser),
    )


def _head(env: Mapping[str, str]) -> str:
    """Rank 0's address: the first of mpirun's own that other nodes can reach."""
    found = re.search(r"tcp://([\d.,]+)", env.get("OMPI_MCA_orte_hnp_uri", ""))
    addresses = found[1].split(",") if found else []
    return next((a for a in addresses if not a.startswith("127.")), LOOPBACK)


def _extra(path: str | None) -> dict[str, Any]:
    """The file of --extra_llm_api_options, which overrides the command line. Raises NoStart."""
    try:
        return dict(yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}) if path else {}
    except (OSError, yaml.YAMLError) as error:
        raise console.NoStart(str(error)) from None


def _form(place: tuple[int, int]) -> LineForm:
    who = f" [RANK {place[0]}]" if place[1] > 1 else ""
    return LineForm(lambda level: time.strftime(f"[%m/%d/%Y-%H:%M:%S] [TRT-LLM]{who} [{level[0]}] "), lambda: "")


class TrtllmDialect:
    """TensorRT-LLM's (dialect.Dialect).

    Its served name is the model folder's, and it takes requests for any name (serve/openai_server.py).
    """

    notices = True
    api = None
    metrics = METRICS

    def __init__(self, version: str, config: str | None) -> None:
        self.version = version
        self.perf = bool(_extra(config).get("return_perf_metrics"))

    def greet(self, rank: SimulatedRank) -> None:
        say = rank.voices.api
        say.info("", console.SIMULATED.format(engine=f"TensorRT-LLM {self.version}"))
        say.bare(f"[TensorRT-LLM] TensorRT LLM version: {self.version}")
        say.info("", "Using LLM with PyTorch backend")

    def join(self, rank: SimulatedRank) -> None:
        rank.voices.api.bare(
            f"[TensorRT-LLM][INFO] MPI size: {rank.limits.world}, MPI local size: 1, rank: {rank.number}"
        )

    def met(self, rank: SimulatedRank, others: list[Frame]) -> None:
        rank.voices.api.bare("[TensorRT-LLM][INFO] Refreshed the MPI local session")

    async def load(self, rank: SimulatedRank) -> None:
        say, weights = rank.voices.api, rank.ledger.weights
        say.info("", f"Prefetching {weights:.2f}GB checkpoint files.")
        await rank.enter("load")
        seconds = rank.speed.load_s * (rank.faults.value("slow_load") or 1.0)
        bar = Bar("Loading weights", 12 * rank.model.layers + 3, seconds, rank.settings.boot_scale)
        await (bar.draw(say) if rank.number == 0 else rank.passing(seconds))
        say.info("", f"Use {weights:.2f} GB for model weights.")
        say.info("", f"Model init total -- {seconds:.2f}s")

    async def fit(self, rank: SimulatedRank) -> None:
        await rank.enter("kv")
        say, ledger, limits = rank.voices.api, rank.ledger, rank.limits
        if ledger.tokens <= 0:
            raise StartFailed("", {"ERROR": "RuntimeError: Impossible to fit in any sequence in kvCache"})
        peak = ledger.weights + ledger.overhead
        say.info(
            "",
            f"Peak memory during memory usage profiling (torch + non-torch): {peak:.2f} GiB, "
            f"available KV cache memory when calculating max tokens: {ledger.cache:.2f} GiB, fraction is set "
            f"{limits.utilization}, kv size per token is {ledger.per_token:.0f}. device total memory "
            f"{ledger.total:.2f} GiB",
        )
        say.bare(
            f"[TensorRT-LLM][INFO] [MemUsageChange] Allocated {ledger.cache:.2f} GiB for max tokens in paged KV cache "
            f"({ledger.tokens})."
        )
        say.info(
            "",
            f"max_seq_len={limits.context}, max_num_requests={limits.sequences}, max_num_tokens={limits.batched}, "
            f"max_batch_size={limits.sequences}",
        )

    async def capture(self, rank: SimulatedRank) -> None:
        say = rank.voices.api
        say.info("", "Running autotuner warmup...")
        await rank.passing(4.0)
        if rank.limits.eager:
            return
        sizes = [s for s in capture_sizes(rank.limits) if s <= rank.limits.sequences]
        say.info("", f"Creating CUDA graph instances for {len(sizes)} batch sizes.")
        await rank.enter("graphs")
        for size in reversed(sizes):
            say.info("", f"Run generation-only CUDA graph warmup for batch size={size}, draft_len=0, max_seq_len=0")
            await rank.passing(rank.speed.graph_s)

    def listening(self, rank: SimulatedRank) -> None:
        """uvicorn is given a socket, and reports it."""
        rank.voices.api.bare(
            f"INFO:     Uvicorn running on http://{rank.args.host}:{rank.args.port} (Press CTRL+C to quit)"
        )

    def ready(self, rank: SimulatedRank) -> None:
        """Nothing: `Application startup complete` was it."""

    def failed(self, rank: SimulatedRank, why: str) -> None:
        rank.voices.api.error("", f"Failed to initialize executor on rank {rank.number}: {why}")

    async def lost(self, rank: SimulatedRank) -> int:
        """The real mpirun ends the job in most cases before a rank can report anything."""
        await asyncio.sleep(rank.settings.dead_s)
        rank.voices.api.error("", "Hang or connection lost: a rank of MPI_COMM_WORLD is gone")
        return 1

    async def drained(self, core: Core) -> None:
        """It does not wait."""

    def exits(self) -> int:
        return 0

    def stopping(self, rank: SimulatedRank) -> None:
        rank.voices.api.bare("INFO:     Shutting down")

    @contextlib.asynccontextmanager
    async def companions(self, rank: SimulatedRank) -> AsyncIterator[None]:
        yield

    def routes(self, site: SimulatedSite) -> list[Route]:
        async def version(request: Request) -> Response:
            return json_response({"version": self.version, "simulated": True})

        health, iterations = Route("/health", site.health), Route("/metrics", partial(_iterations, site))
        found = [health, Route("/version", version), iterations]
        return [*found, Route("/prometheus/metrics", site.scrape)] if self.perf else found

    def guarded(self, path: str) -> bool:
        """It has no keys."""
        return False

    def labels(self, line: str) -> str:
        return line.replace('engine="0"', 'engine_type="trtllm"')


async def _iterations(site: SimulatedSite, request: Request) -> Response:
    """/metrics is JSON here: statistics of the last steps."""
    running, waiting, _ = site.core.load()
    return json_response([{"numActiveRequests": running, "numQueuedRequests": waiting, "simulated": True}])

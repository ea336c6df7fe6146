"""SGLang: `python -m simulators sglang ...`, as `python -m sglang.launch_server ...`.

Read from sglang 0.5.12: srt/model_executor (model_runner.py, cuda_graph_runner.py), srt/mem_cache/memory_pool.py,
srt/managers/scheduler.py, srt/entrypoints/http_server.py, srt/observability/metrics_collector.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simulators import console, sglang_api
from simulators.life import Head, run_worker
from simulators.site import SimulatedSite, SiteApi
from sparkwright.simulator.asked import json_response
from sparkwright.simulator.ledger import capture_sizes
from sparkwright.simulator.link import Frame
from sparkwright.simulator.link import HeadLink as Ranks
from sparkwright.simulator.log import LineForm, bind_port, web_server
from sparkwright.simulator.phases import Bar
from sparkwright.simulator.rank import SimulatedRank, StartFailed
from sparkwright.simulator.server import Handler
from sparkwright.simulator.service import Core

VERSION = "0.5.12"
METRICS: Mapping[str, str] = {
    "sglang:num_running_reqs": "vllm:num_requests_running",
    "sglang:num_queue_reqs": "vllm:num_requests_waiting",
    "sglang:token_usage": "vllm:kv_cache_usage_perc",
    "sglang:num_retracted_requests_total": "vllm:num_preemptions_total",
    "sglang:prompt_tokens_total": "vllm:prompt_tokens_total",
    "sglang:generation_tokens_total": "vllm:generation_tokens_total",
    "sglang:cached_tokens_total": "vllm:prompt_tokens_cached_total",
    "sglang:time_to_first_token_seconds": "vllm:time_to_first_token_seconds",
    "sglang:inter_token_latency_seconds": "vllm:inter_token_latency_seconds",
    "sglang:e2e_request_latency_seconds": "vllm:e2e_request_latency_seconds",
    "sglang:num_requests_total": "vllm:request_success_total",
}
LEFT = "Gracefully exiting... Remaining number of requests {}. Remaining requests remaining_rids={}."
UNBALANCED = "The memory capacity is unbalanced. Some GPUs may be occupied by other processes. "
NO_MEMORY = "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."
CLOSED = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:538] Read error [{}]: Connection reset by peer"
DRAIN_S, DIES_S = 5.0, 0.3  # between two counts of what still runs; from a broken group to the end (capture m1)
_RANKED = ("num_running_reqs", "num_queue_reqs", "token_usage", "num_retracted_requests_total")
OPEN_PATHS = ("/health", "/health_generate", "/metrics")


def run(argv: list[str], env: Mapping[str, str]) -> int:
    """Raises NoStart and, for a refused command line, SystemExit(2)."""
    version = env.get("SPARKWRIGHT_SIMULATOR_VERSION") or VERSION
    parser = console.parser("launch_server.py", f"sglang-{version}")
    given = parser.parse_args(_configured(argv))
    if not given.model_path:
        parser.error("the following arguments are required: --model-path/--model")
    args = _canonical(partial(parser.value, given))
    own = console.settings(env, tuple(filter(None, [given.api_key])))
    dialect = SglangDialect(
        given, version, env.get("SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK", "1") not in ("0", "false")
    )
    rank = console.make_rank(args, own, _form(args.node_rank, args.tensor_parallel_size * args.pipeline_parallel_size))
    host, port = args.master_addr, args.master_port
    if args.node_rank > 0:
        return asyncio.run(run_worker(rank, dialect, host, port))
    link = Ranks(rank.nodes)

    async def meet() -> None:
        await link.listen(host, port)
        await link.all_joined()

    return asyncio.run(Head(rank, dialect, link, meet, f"SGLang {version}").run())


def _configured(argv: list[str]) -> list[str]:
    """`--config FILE`: its keys come first, so that the command line wins (srt/server_args_config_parser.py)."""
    if "--config" not in argv:
        return argv
    at = argv.index("--config")
    loaded = json.loads(Path(argv[at + 1]).read_text(encoding="utf-8"))
    return [*(word for key, value in loaded.items() for word in (f"--{key}", str(value))), *argv[:at], *argv[at + 2 :]]


def _canonical(has: Callable[[str], Any]) -> Namespace:
    """has: what a flag was given, under the name of its that all versions have."""
    model = has("model-path")
    host, port = str(has("dist-init-addr") or "127.0.0.1:0").rsplit(":", 1)
    drafts = has("speculative-num-draft-tokens")
    return console.canonical(
        model,
        served_model_name=[has("served-model-name") or model],
        host=has("host"),
        port=has("port"),
        tensor_parallel_size=has("tp-size"),
        pipeline_parallel_size=has("pp-size"),
        nnodes=has("nnodes"),
        node_rank=has("node-rank"),
        master_addr=host,
        master_port=int(port),
        max_model_len=has("context-length"),
        max_num_seqs=has("max-running-requests"),
        max_num_batched_tokens=has("chunked-prefill-size"),
        kv_cache_dtype=has("kv-cache-dtype"),
        gpu_memory_utilization=has("mem-fraction-static"),
        enforce_eager=has("disable-cuda-graph"),
        enable_prefix_caching=not has("disable-radix-cache"),
        reasoning_parser=has("reasoning-parser"),
        tool_call_parser=has("tool-call-parser"),
        enable_auto_tool_choice=bool(has("tool-call-parser")),
        speculative_config={"num_speculative_tokens": max(drafts - 1, 1)} if drafts else None,
    )


def _form(rank: int, world: int) -> LineForm:
    place = f" TP{rank}" if world > 1 else ""

    def stamp(where: str) -> str:
        return time.strftime(f"[%Y-%m-%d %H:%M:%S{where}] ")

    return LineForm(lambda level: stamp(place if level == "INFO" else ""), lambda: stamp(""))


class SglangDialect:
    """SGLang's (dialect.Dialect). Level INFO is a scheduler's line, MAIN one of the process that started it."""

    notices = True
    metrics = METRICS

    @property
    def api(self) -> SiteApi:
        reports = bool(getattr(self.given, "enable_cache_report", False))
        return SiteApi(sglang_api.answered, sglang_api.refused, sglang_api.too_long, reports)

    def __init__(self, given: Namespace, version: str, balanced: bool) -> None:
        self.given = given
        self.version = version
        self.balanced = balanced

    def greet(self, rank: SimulatedRank) -> None:
        say = rank.voices.api
        say.write("MAIN", "", console.SIMULATED.format(engine=f"SGLang {self.version}"))
        shown = {k: v for k, v in vars(self.given).items() if v not in (None, False) and k != "api_key"}
        say.write("MAIN", "", f"server_args=ServerArgs({', '.join(f'{k}={v!r}' for k, v in shown.items())})")

    def join(self, rank: SimulatedRank) -> None:
        rank.voices.api.info("", "Init torch distributed begin.")

    def met(self, rank: SimulatedRank, others: list[Frame]) -> None:
        own = rank.settings.free_gib
        lowest = min([own, *(float(o["free"]) for o in others)])
        if rank.limits.world > 1 and lowest < own * 0.9:
            why = f"pre_model_load_memory={lowest}, local_gpu_memory={own}, local_gpu_memory * 0.9={own * 0.9}"
            if self.balanced:
                raise StartFailed("", {"ERROR": f"RuntimeError: {UNBALANCED}{why}"})
            rank.voices.api.info("", UNBALANCED + why)
        if rank.nodes > 1:
            spans = "CustomAllreduce is disabled because this process group spans across nodes."
            rank.voices.api.info("", spans)
        rank.voices.api.info("", "Init torch distributed ends. elapsed=1.24 s, mem usage=0.31 GB")

    async def load(self, rank: SimulatedRank) -> None:
        say, ledger, free = rank.voices.api, rank.ledger, rank.settings.free_gib
        say.info("", f"Load weight begin. avail mem={free:.2f} GB")
        await rank.enter("load")
        seconds = rank.speed.load_s * (rank.faults.value("slow_load") or 1.0)
        bar = Bar("Multi-thread loading shards", rank.model.shards, seconds, rank.settings.boot_scale)
        dummy = getattr(self.given, "load_format", "") == "dummy"
        await (rank.passing(seconds) if dummy or rank.number else bar.shards(say))
        rest = free - ledger.weights
        say.info(
            "",
            f"Load weight end. elapsed={seconds:.2f} s, type={rank.model.architecture}, avail mem={rest:.2f} GB, "
            f"mem usage={ledger.weights:.2f} GB.",
        )

    async def fit(self, rank: SimulatedRank) -> None:
        await rank.enter("kv")
        say, ledger = rank.voices.api, rank.ledger
        if ledger.tokens <= 0:
            raise StartFailed("", {"ERROR": NO_MEMORY})
        half = ledger.cache / 2
        if rank.limits.world == 1:
            say.info("", "Using KV cache dtype: torch.bfloat16")
        say.info("", f"KV Cache is allocated. #tokens: {ledger.tokens}, K size: {half:.2f} GB, V size: {half:.2f} GB")
        say.info("", f"Memory pool end. avail mem={_left(rank):.2f} GB")

    async def capture(self, rank: SimulatedRank) -> None:
        """A capture that hangs shows its bar at 0 first (report 001)."""
        say, left = rank.voices.api, _left(rank)
        if not rank.limits.eager:
            sizes = capture_sizes(rank.limits)
            seconds = rank.speed.graph_s * len(sizes)
            say.info("", f"Capture cuda graph begin. This can take up to several minutes. avail mem={left:.2f} GB")
            if rank.number == 0:
                say.info("", f"Capture cuda graph bs {sorted(sizes)}")
            bar = Bar(
                f"Capturing batches (bs={sizes[-1]} avail_mem={left:.2f} GB)",
                len(sizes),
                seconds,
                rank.settings.boot_scale,
            )
            if rank.number == 0:
                say.raw(f"\r{bar.at(0)}")
            await rank.enter("graphs")
            await (bar.draw(say) if rank.number == 0 else rank.passing(seconds))
            used = rank.ledger.graphs
            say.info(
                "",
                f"Capture cuda graph end. Time elapsed: {seconds:.2f} s. mem usage={used:.2f} GB. "
                f"avail mem={left - used:.2f} GB.",
            )
        self._told(rank)

    def _told(self, rank: SimulatedRank) -> None:
        limits = rank.limits
        rank.voices.api.info(
            "",
            f"max_total_num_tokens={rank.ledger.tokens}, chunked_prefill_size={limits.batched}, "
            f"max_prefill_tokens=16384, max_running_requests={limits.sequences}, context_len={limits.context}, "
            f"available_gpu_mem={_left(rank):.2f} GB",
        )

    def listening(self, rank: SimulatedRank) -> None:
        rank.voices.api.bare(
            f"INFO:     Uvicorn running on http://{rank.args.host}:{rank.args.port} (Press CTRL+C to quit)"
        )

    def ready(self, rank: SimulatedRank) -> None:
        rank.voices.api.info("", "Prefill batch, #new-seq: 1, #new-token: 6, #cached-token: 0, token usage: 0.00, "
                             "#running-req: 0, #queue-req: 0, #pending-token: 0, cuda graph: False, "
                             "input throughput (token/s): 0.00")  # fmt: skip
        rank.voices.api.write("MAIN", "", "The server is fired up and ready to roll!")

    def failed(self, rank: SimulatedRank, why: str) -> None:
        _excepted(rank, why)
        rank.voices.api.write("MAIN", "", "Received sigquit from a child process. It usually means the child failed.")

    async def lost(self, rank: SimulatedRank) -> int:
        """The scheduler's collective fails, its process tree is killed, the parent with it (kill_process_tree)."""
        await rank.passing(DIES_S)
        why = f"RuntimeError: {CLOSED.format(rank.args.master_addr)}"
        _excepted(rank, why)
        ended = "SIGQUIT received. signum=None, frame=None. It usually means one child failed."
        rank.voices.api.write("MAIN", "", ended)
        if not rank.faults.has("ignore_sigterm"):
            os.kill(os.getpid(), signal.SIGKILL)
        return 1

    async def drained(self, core: Core) -> None:
        """It waits for ever: capture a-tiny still counted two requests of clients that were gone after 30 s."""
        say, rank = core.rank.voices.api, core.rank
        notice = "SIGTERM received. signum=None frame=None. Draining requests and shutting down..."
        say.write("MAIN", "", notice)
        await rank.passing(DRAIN_S)
        while jobs := [job.name for job in (*core.engine.running, *core.engine.waiting)]:
            say.write("MAIN", "", LEFT.format(len(jobs), jobs))
            await rank.passing(DRAIN_S)

    def stopping(self, rank: SimulatedRank) -> None:
        if rank.number == 0:
            rank.voices.api.write("MAIN", "", LEFT.format(0, []))

    def exits(self) -> int:
        """kill_process_tree(os.getpid()), which takes itself, too; process 1 of a container survives that."""
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    @contextlib.asynccontextmanager
    async def companions(self, rank: SimulatedRank) -> AsyncIterator[None]:
        """A worker's dummy server: /health is 200 whatever happens (launch_dummy_health_check_server).

        At an address of another node it ends, and the worker serves all the same (capture m1).
        """
        say, (host, port) = rank.voices.api, (rank.args.host, rank.args.port)
        say.write("MAIN", "", f"Dummy health check server started in background thread at {host}:{port}")
        try:
            sock = bind_port(host, port)
        except OSError as error:
            what = f"error while attempting to bind on address ('{host}', {port})"
            say.write("MAIN", "", f"[Errno {error.errno}] {what}: {str(error.strerror).lower()}")
            say.write("MAIN", "", f"Dummy health check server stopped at {host}:{port}")
            yield
            return
        routes = [Route(path, _well) for path in ("/ping", "/health", "/health_generate")]
        server = web_server(Starlette(routes=routes), rank.args, say)
        serving = asyncio.ensure_future(server.serve(sockets=[sock]))
        try:
            yield
        finally:
            server.should_exit = True
            await serving

    def routes(self, site: SimulatedSite) -> list[Route]:
        routes = [
            *(Route(path, site.health) for path in ("/health", "/health_generate")),
            *(Route(path, self._about(self._model, site)) for path in ("/get_model_info", "/model_info")),
            *(Route(path, self._about(self._server, site)) for path in ("/get_server_info", "/server_info")),
        ]
        return [*routes, Route("/metrics", site.scrape)] if self.given.enable_metrics else routes

    def _about(self, body: Callable[[SimulatedSite], dict[str, object]], site: SimulatedSite) -> Handler:
        async def answer(request: Request) -> Response:
            return json_response(body(site))

        return answer

    def _model(self, site: SimulatedSite) -> dict[str, object]:
        rank = site.core.rank
        return {"model_path": rank.args.model, "is_generation": True, "architectures": [rank.model.architecture],
                "simulated": True}  # fmt: skip

    def _server(self, site: SimulatedSite) -> dict[str, object]:
        shown = {k: v for k, v in vars(self.given).items() if k != "api_key"}
        pool = {"max_total_num_tokens": site.core.rank.ledger.tokens}
        return {**shown, **pool, "version": self.version, "simulated": True}

    def guarded(self, path: str) -> bool:
        return not path.startswith(OPEN_PATHS)

    def labels(self, line: str) -> str:
        """The labels of a line: a scheduler's count has its place in the group, an API's count has none."""
        line = re.sub(r',?finished_reason="[^"]*"', "", line.replace('engine="0"', 'engine_type="unified"'))
        if line.startswith("sglang:cached_tokens_total{"):
            return line.replace("{", '{cache_source="device",', 1)
        if line.partition("{")[0].removeprefix("sglang:") in _RANKED:
            return line.replace("} ", ',moe_ep_rank="0",pp_rank="0",tp_rank="0"} ', 1)
        return line


def _excepted(rank: SimulatedRank, why: str) -> None:
    """A traceback has the stamp at its headline only."""
    rank.voices.api.info("", "Scheduler hit an exception: Traceback (most recent call last):")
    rank.voices.api.raw(f"{why}\n\n")


async def _well(request: Request) -> Response:
    return Response()


def _left(rank: SimulatedRank) -> float:
    return rank.settings.free_gib - rank.ledger.weights - max(rank.ledger.cache, 0.0)

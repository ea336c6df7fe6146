"""A rank's start up to the rendezvous, and its lines once it is up, as vLLM prints them (captures a-tiny, m1-m4)."""

from __future__ import annotations

from sparkwright.simulator.log import Voice
from sparkwright.simulator.rank import Rank, StartFailed

LOGO = """
       █     █     █▄   ▄█
 ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.21.0
  █▄█▀ █     █     █     █  model   {model}
   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀
"""
MARK = "SIMULATED: this is sparkwright's "  # also of earlier releases, which called it something else
SIMULATED = f"{MARK}simulator of vLLM 0.21.0; no model runs."
FP8 = (
    "Using fp8 data type to store kv cache. It reduces the GPU memory footprint and boosts the performance. Meanwhile, "
    "it may cause accuracy drop without a proper scaling factor"
)
TOPK = "FlashInfer top-p/top-k sampling disabled via VLLM_USE_FLASHINFER_SAMPLER=0; using PyTorch-native sampler."
C10D = "[c10d] The hostname of the client socket cannot be retrieved. err=-3"


def greet(rank: Rank) -> None:
    say = rank.voices.api
    if not rank.args.headless:
        say.info("utils.py:306", LOGO.format(model=rank.args.model).rstrip("\n") + "\n")
        say.info("utils.py:240", f"non-default args: {rank.args.given}")


def configure(rank: Rank) -> None:
    """The lines of the engine's configuration. Raises StartFailed as vLLM refuses: context, then devices."""
    say, args, limits = rank.voices.api, rank.args, rank.limits
    say.info("model.py:568", f"Resolved architecture: {rank.model.architecture}")
    if limits.context > rank.model.limit and not rank.settings.long_context_allowed:
        raise StartFailed("max-len", {"ASKED": str(limits.context), "LIMIT": f"{float(rank.model.limit)}"})
    say.info("model.py:1697", f"Using max model len {limits.context}")
    if str(args.kv_cache_dtype).startswith("fp8"):
        say.info("cache.py:261", FP8)
    if limits.world // rank.nodes > rank.settings.gpus and args.distributed_executor_backend != "ray":
        raise StartFailed("bad-tp", {"WORLD": str(limits.world), "GPUS": str(rank.settings.gpus)})
    if rank.nodes > 1:
        say.info("arg_utils.py:1844", f"Inferred data_parallel_rank 0 from node_rank {rank.number}")
    say.info("scheduler.py:239", f"Chunked prefill is enabled with max_num_batched_tokens={limits.batched}.")
    _options(rank, say)


def _options(rank: Rank, voice: Voice) -> None:
    """Printed twice: by the API server and, at the end, by the engine core."""
    method = (rank.args.speculative_config or {}).get("method", "")
    if method == "ngram":
        voice.warning(
            "vllm.py:861", "Async scheduling not supported with ngram-based speculative decoding and will be disabled."
        )
    voice.info("vllm.py:886", f"Asynchronous scheduling is {'disabled' if method == 'ngram' else 'enabled'}.")
    eager = rank.limits.eager
    if eager:
        voice.warning(
            "vllm.py:942",
            "Enforce eager set, disabling torch.compile and CUDAGraphs. This is equivalent to setting -cc.mode=none "
            "-cc.cudagraph_mode=none",
        )
        voice.warning(
            "vllm.py:960",
            "Inductor compilation was disabled by user settings, optimizations settings that are only active during "
            "inductor compilation will be ignored.",
        )
    order = "['vllm_c', 'native']" if eager else "['native']"
    voice.info(
        "kernel.py:212",
        "Final IR op priority after setting platform defaults: "
        f"IrOpPriorityConfig(rms_norm={order}, fused_add_rms_norm={order})",
    )
    if eager:
        voice.info("vllm.py:1135", "Cudagraph is disabled under eager mode")
        voice.info("compilation.py:303", "Enabled custom fusions: norm_quant, act_quant")


def announce(rank: Rank) -> None:
    """The engine core, or the headless executor, and its worker are up; next is the rendezvous."""
    v, args, world = rank.voices, rank.args, rank.limits.world
    master = f"{args.master_addr}:{args.master_port}"
    spread = args.distributed_executor_backend == "ray"  # its workers speak elsewhere
    torch = "Reducing Torch parallelism from 20 threads to 1 to avoid unnecessary CPU contention. Set OMP_NUM_THREADS "
    if args.headless:
        v.api.info(
            "serve.py:186",
            f"Launching vLLM (v0.21.0) headless multiproc executor, with head node address {master} for "
            "torch.distributed process group.",
        )
    else:
        v.core.info("core.py:109", f"Initializing a V1 LLM engine (v0.21.0) with config: {described(rank)}")
    if world > 1 and not spread:
        v.core.warning(
            "multiproc_executor.py:1029", torch + "in the external environment to tune this value as needed."
        )
    if world > 1 and not args.headless and not spread:
        v.core.info(
            "multiproc_executor.py:139",
            f"DP group leader: node_rank=0, node_rank_within_dp=0, master_addr={args.master_addr}, "
            f"mq_connect_ip={args.master_addr} (local), world_size={world}, local_world_size={world // rank.nodes}",
        )
    where = master if rank.nodes > 1 else "127.0.0.1:58691"
    v.worker.info(
        "parallel_state.py:1410",
        f"world_size={world} rank={rank.number} local_rank=0 distributed_init_method=tcp://{where} backend=nccl",
    )
    v.native("socket.cpp:207", C10D)


def described(rank: Rank) -> str:
    """The head of the configuration that vLLM prints; the rest of its 7,000 characters nobody reads."""
    args, name = rank.args, rank.args.model
    served = (args.served_model_name or [name])[0]
    return (
        f"model='{name}', speculative_config={args.speculative_config}, tokenizer='{args.tokenizer or name}', "
        f"skip_tokenizer_init=False, tokenizer_mode={args.tokenizer_mode}, revision={args.revision}, "
        f"trust_remote_code={args.trust_remote_code}, dtype=torch.bfloat16, max_seq_len={rank.limits.context}, "
        f"load_format={args.load_format}, tensor_parallel_size={args.tensor_parallel_size}, "
        f"pipeline_parallel_size={args.pipeline_parallel_size}, data_parallel_size={args.data_parallel_size}, "
        f"quantization={args.quantization or rank.model.quantized or None}, enforce_eager={rank.limits.eager}, "
        f"kv_cache_dtype={args.kv_cache_dtype}, device_config=cuda, seed={args.seed}, served_model_name={served}, "
        f"enable_prefix_caching={rank.limits.prefix_caching}, enable_chunked_prefill=True"
    )


def joined(rank: Rank) -> None:
    """All ranks have met; NCCL comes next, and hangs silently when it is on the wrong interface (captures m4)."""
    if rank.limits.world > 1 and rank.number == 0:
        rank.voices.worker.info("pynccl.py:111", "vLLM is using nccl==2.28.9")
        rank.voices.worker.raw("NCCL version 2.28.9+cuda13.0\n")


def connected(rank: Rank) -> None:
    say, world = rank.voices.worker, rank.limits.world
    if world > 1:
        say.warning("symm_mem.py:106", "SymmMemCommunicator: symmetric memory multicast operations are not supported.")
    expert = rank.number if rank.model.fan_out else "N/A"
    say.info(
        "parallel_state.py:1723",
        f"rank {rank.number} in world size {world} is assigned as DP rank 0, PP rank 0, PCP rank 0, "
        f"TP rank {rank.number}, EP rank {expert}, EPLB rank N/A",
    )
    say.info("topk_topp_sampler.py:70", TOPK)


def initialized(rank: Rank, seconds: float) -> None:
    say, took = rank.voices.core, rank.speed.compile_s
    tail = "" if rank.limits.eager else f" (compilation: {took:.2f} s)"
    line = "core.py:306" if rank.limits.eager else "core.py:299"
    say.info(line, f"init engine (profile, create kv cache, warmup model) took {seconds:.2f} s{tail}")
    _options(rank, say)


def opened(rank: Rank, paths: list[tuple[str, str]]) -> None:
    """The API server is about to listen."""
    say, args = rank.voices.api, rank.args
    say.info("api_server.py:613", "Supported tasks: ['generate']")
    if args.enable_auto_tool_choice:
        say.info("parser_manager.py:202", '"auto" tool choice has been enabled.')
    say.info(
        "hf.py:483",
        "Detected the chat template content format to be 'string'. You can set `--chat-template-content-format` to "
        "override this.",
    )
    say.info("api_server.py:617", f"Starting vLLM server on http://{args.host or '0.0.0.0'}:{args.port}")
    say.info("launcher.py:37", "Available routes are:")
    for path, methods in paths:
        say.info("launcher.py:46", f"Route: {path}, Methods: {methods}")

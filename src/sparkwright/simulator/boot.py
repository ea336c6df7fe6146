"""A rank's start up to the rendezvous, and its lines once it is up, as vLLM prints them (captures a-tiny, m1-m4)."""

from __future__ import annotations

from sparkwright.simulator.log import LogVoice
from sparkwright.simulator.rank import SimulatedRank, StartFailed

LOGO = """
       █     █     █▄   ▄█
 ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.21.0
  █▄█▀ █     █     █     █  model   {model}
   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀
"""
MARK = "SIMULATED: this is sparkwright's "  # also of earlier releases, which called it something else
SIMULATED = f"{MARK}simulator of vLLM 0.21.0; no model runs."
C10D = "[c10d] The hostname of the client socket cannot be retrieved. err=-3"


def print_greeting(rank: SimulatedRank) -> None:
    say = rank.voices.api
    if not rank.args.headless:
        say.info("utils.py:306", LOGO.format(model=rank.args.model).rstrip("\n") + "\n")
        say.line("utils.py:240", given=rank.args.given)


def configure(rank: SimulatedRank) -> None:
    """The lines of the engine's configuration. Raises StartFailed as vLLM refuses: context, then devices."""
    say, args, limits = rank.voices.api, rank.args, rank.limits
    say.line("model.py:568", architecture=rank.model.architecture)
    if limits.context > rank.model.limit and not rank.settings.long_context_allowed:
        raise StartFailed("max-len", {"ASKED": str(limits.context), "LIMIT": f"{float(rank.model.limit)}"})
    say.line("model.py:1697", context=limits.context)
    if str(args.kv_cache_dtype).startswith("fp8"):
        say.line("cache.py:261")
    if limits.world // rank.nodes > rank.settings.gpus and args.distributed_executor_backend != "ray":
        raise StartFailed("bad-tp", {"WORLD": str(limits.world), "GPUS": f"{rank.settings.gpus:g}"})
    if rank.nodes > 1:
        say.line("arg_utils.py:1844", number=rank.number)
    say.line("scheduler.py:239", batched=limits.batched)
    _options(rank, say)


def _options(rank: SimulatedRank, voice: LogVoice) -> None:
    """Printed twice: by the API server and, at the end, by the engine core."""
    method = (rank.args.speculative_config or {}).get("method", "")
    if method == "ngram":
        voice.line("vllm.py:861")
    voice.line("vllm.py:886", state="disabled" if method == "ngram" else "enabled")
    eager = rank.limits.eager
    if eager:
        voice.line("vllm.py:942")
        voice.line("vllm.py:960")
    order = "['vllm_c', 'native']" if eager else "['native']"
    voice.line("kernel.py:212", order=order)
    if eager:
        voice.line("vllm.py:1135")
        voice.line("compilation.py:303")


def announce(rank: SimulatedRank) -> None:
    """The engine core, or the headless executor, and its worker are up; next is the rendezvous."""
    v, args, world = rank.voices, rank.args, rank.limits.world
    master = f"{args.master_addr}:{args.master_port}"
    spread = args.distributed_executor_backend == "ray"  # its workers speak elsewhere
    torch = "Reducing Torch parallelism from 20 threads to 1 to avoid unnecessary CPU contention. Set OMP_NUM_THREADS "
    if args.headless:
        v.api.line("serve.py:186", master=master)
    else:
        v.core.line("core.py:109", described=described(rank))
    if world > 1 and not spread:
        v.core.warning(
            "multiproc_executor.py:1029", torch + "in the external environment to tune this value as needed."
        )
    if world > 1 and not args.headless and not spread:
        v.core.line("multiproc_executor.py:139", master_addr=args.master_addr, world=world, local=world // rank.nodes)
    where = master if rank.nodes > 1 else "127.0.0.1:58691"
    v.worker.line("parallel_state.py:1410", world=world, number=rank.number, where=where)
    v.native("socket.cpp:207", C10D)


def described(rank: SimulatedRank) -> str:
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


def joined(rank: SimulatedRank) -> None:
    """All ranks have met; NCCL comes next, and hangs silently when it is on the wrong interface (captures m4)."""
    if rank.limits.world > 1 and rank.number == 0:
        rank.voices.worker.line("pynccl.py:111")
        rank.voices.worker.raw("NCCL version 2.28.9+cuda13.0\n")


def connected(rank: SimulatedRank) -> None:
    say, world = rank.voices.worker, rank.limits.world
    if world > 1:
        say.line("symm_mem.py:106")
    expert = rank.number if rank.model.fan_out else "N/A"
    say.line("parallel_state.py:1723", number=rank.number, world=world, expert=expert)
    say.line("topk_topp_sampler.py:70")


def initialized(rank: SimulatedRank, seconds: float) -> None:
    say, took = rank.voices.core, rank.speed.compile_s
    tail = "" if rank.limits.eager else f" (compilation: {took:.2f} s)"
    line = "core.py:306" if rank.limits.eager else "core.py:299"
    say.info(line, f"init engine (profile, create kv cache, warmup model) took {seconds:.2f} s{tail}")
    _options(rank, say)


def opened(rank: SimulatedRank, paths: list[tuple[str, str]]) -> None:
    """The API server is about to listen."""
    say, args = rank.voices.api, rank.args
    say.line("api_server.py:613")
    if args.enable_auto_tool_choice:
        say.line("parser_manager.py:202")
    say.line("hf.py:483")
    say.line("api_server.py:617", host=args.host or "0.0.0.0", port=args.port)
    say.line("launcher.py:37")
    for path, methods in paths:
        say.line("launcher.py:46", path=path, methods=methods)

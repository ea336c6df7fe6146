"""tests/data/docs/five-reports.md: each line of the five reports is covered by the codes that stand next to it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sparkwright.checks.catalog import check_all
from sparkwright.cli.explain_pages import code_pages
from sparkwright.domain.check import Context
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.plan import Plan, RankSpec
from sparkwright.domain.recipe import Parsers, Recipe, Serving, Speculation
from sparkwright.engines.catalog import engine, rehearse, review, start_groups
from sparkwright.planner.ledger import ledgers
from sparkwright.planner.parallelism import advise
from sparkwright.remote import docker
from unit.causes.naming import named_causes
from unit.checks import fabric_cases, host_cases, recipe_cases, test_rules
from unit.checks.recipe_cases import DSV4, KV8, MARLIN, NGC, NVFP4, RAY, SGLANG, UCX, planned, recipe, uneven
from unit.checks.samples import NODES
from unit.engines.samples import hub_context, placement, shipped
from unit.for_each import for_each

PAGE = Path(__file__).resolve().parents[2] / "data/docs/five-reports.md"
CODE = re.compile(r"\b[A-Z]+\d{3}\b")


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the page."""

    number: str
    says: str
    before: str
    after: str
    ours: str


LINES = [Line(*m) for m in re.findall(r"^\| (\d\.\d+) \| (.*?) \|(.*?)\|(.*?)\|(.*?)\|$", PAGE.read_text(), re.M)]
OLD_FLAGS = {"num-nodes": 2, "master-addr": "10.0.0.1", "master-port": 5000, "gpu-memory-utilization": 0.8}
OLD_FLAGS |= {"max-model-len": 131072, "fp8-gemm-runner-backend": "triton"}
# The configurations of the reports, as recipes; a few facts where the line is about the nodes.
LAUNCH = recipe(DSV4, SGLANG, flags=OLD_FLAGS, serving=KV8)
BYPASSED = shipped("deepseek-v4-flash-sglang").env
OWN_SGLANG = recipe(DSV4, SGLANG, env=BYPASSED, id="deepseek-ai/DeepSeek-V4-Flash")
M27_FP8 = replace(shipped("minimax-m2.7-fp8-sglang"), state=recipe().state, flags={"dist-timeout": 300})
M27_088 = recipe(NVFP4, "vllm-ray 0.21.0", serving=Serving(memory_fraction=0.88), flags={})
NGC_ONE = recipe(NVFP4, "vllm 0.19.0", image=NGC, serving=Serving(memory_fraction=0.91, kv_dtype="fp8"))
NGC_BAD = replace(NGC_ONE, flags={"attention-backend": "FLASHINFER", "enforce-eager": True, "quantization": "mxfp4"})
DS4 = replace(shipped("deepseek-v4-flash"), state=recipe().state)
REASONING = recipe(
    flags={"override-generation-config": {"max_new_tokens": 300}}, parsers=Parsers(reasoning="openai_gptoss")
)
BEFORE: dict[str, tuple[Recipe | Context, ...]] = {
    **dict.fromkeys(("0.1", "0.2", "0.3", "0.4", "0.5", "0.6"), (LAUNCH,)),
    "0.8": (OWN_SGLANG,),
    "0.9": (uneven(),),
    "0.10": (OWN_SGLANG,),
    "0.11": (OWN_SGLANG, shipped("deepseek-v4-flash-sglang")),
    "0.13": (recipe(None, SGLANG, flags={"attention-backend": "fa3"}),),
    "1.1": (recipe(NVFP4, SGLANG, env={"SGLANG_DISABLE_CUDA_GRAPH": "1"}),),
    "1.3": (M27_FP8,),
    "1.4": (replace(M27_FP8, serving=Serving(memory_fraction=0.85)),),
    "1.5": (M27_FP8, shipped("minimax-m2.7-fp8-sglang")),
    "1.6": (M27_088,),
    "1.7": (M27_088,),
    "1.8": (M27_088,),
    "1.10": (replace(RAY, flags={"compilation-config": {"cudagraph_mode": "PIECEWISE"}}),),
    **dict.fromkeys(("2.1", "2.2", "2.3", "2.5", "2.6", "2.9", "2.14"), (NGC_BAD,)),
    "2.4": (replace(NGC_ONE, flags=MARLIN),),
    "2.8": (replace(NGC_ONE, flags={"load-format": "fastsafetensors"}),),
    "2.10": (REASONING,),
    "2.13": (replace(RAY, env={"RAY_memory_monitor_refresh_ms": "250"}),),
    "2.15": (replace(RAY, env={"NCCL_IB_GID_INDEX": "3"}),),
    "2.16": (recipe(env={"NCCL_IB_DISABLE": "1"}),),
    "3.1": (replace(DS4, shm_bytes=64 << 20),),
    "3.3": (replace(DS4, engine=replace(DS4.engine, image="lmxxf/vllm-deepseek-v4-dgx-spark:latest")),),
    "3.4": (recipe_cases.PULLED,),
    "3.5": (
        replace(DS4, env={}, engine=replace(DS4.engine, image="vllm-node:dsv4")),
        replace(DS4, engine=replace(DS4.engine, extra_env=())),
    ),
    "3.6": (replace(DS4, env={"MASTER_ADDR": "192.168.0.8"}, flags={"node-rank": 0}),),
    "4.1": (replace(DS4, env={name: value for name, value in DS4.env.items() if name not in UCX}),),
    "4.4": (replace(DS4, serving=replace(DS4.serving, memory_fraction=0.86)),),
    "4.5": (replace(DS4, engine=replace(DS4.engine, image="vllm/vllm-openai:v0.21.0")),),
    "4.6": (replace(DS4, engine=replace(DS4.engine, version="0.22.1"), speculation=Speculation("mtp", 2)),),
}
LOGS = {
    **dict.fromkeys(
        ("0.1", "0.2", "0.3", "0.4", "0.6"),
        "launch_server.py: error: unrecognized arguments: --num-nodes 2 --master-addr 10.0.0.1 --max-model-len 131072",
    ),
    "0.5": "launch_server.py: error: argument --kv-cache-dtype: invalid choice: 'fp8' (choose from 'auto', 'fp8_e5m2', "
    "'fp8_e4m3', 'bf16')",
    "0.7": "RuntimeError: Gloo connectFullMesh failed with [/gloo/transport/tcp/pair.cc:144] no error\n"
    "[gloo] connect to 127.0.0.1:41877: Connection refused",
    "0.8": 'RuntimeError: Assertion error (deep_gemm/csrc/apis/layout.hpp:57): Unknown SF transformation',
    "0.9": "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. "
    "pre_model_load_memory=33.77, local_gpu_memory=101.33, local_gpu_memory * 0.9=91.20",
    "0.11": "RuntimeError: Unsupported architecture for sparse decode fwd",
    "0.12": "with /etc/modprobe.d/zz-nvidia-drm-override.conf CUDA reports 62 GB of memory instead of 119.7 GB",
    "1.1": "Capturing batches (bs=256 avail_mem=20.11 GB):   0%|          | 0/36 [00:00<?, ?it/s]\n"
    "# gpu     sm    mem    enc    dec\n" + "    0     96      0      0      0\n" * 20,
    "1.2": "a container that crashed or was stopped hard: the driver holds on to 33 GB of unified memory, which is not "
    "released until a reboot",
    "1.4": "the page cache fills the unified memory; after echo 3 > /proc/sys/vm/drop_caches the load no longer swaps",
    "1.5": 'RuntimeError: Assertion error (deep_gemm/csrc/apis/layout.hpp:57): Unknown SF transformation',
    "1.6": "ValueError: Free memory on device cuda:0 (98.31/119.68 GiB) on startup is less than desired GPU memory "
    "utilization (0.88, 105.32 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
    "1.11": "WARNING [marlin_utils_fp4.py:138] Your GPU does not have native support for FP4 computation but FP4 "
    "quantization is being used. Weight-only FP4 compression will be used leveraging the Marlin kernel.",
    "2.2": "CUTLASS FP4 MoE on SM121 gives garbage output without an error; --moe-backend=marlin is right",
    "2.6": "NVRM: Xid (PCI:000f:01:00): 43, pid=4711, name=VLLM::Worker_TP, channel 0x0000000a\n"
    "gpu-memory-utilization 0.95 on unified memory ended with OOM under load",
    "2.7": "driver 590.48 hangs in CUDA graph capture on GB10; with 580.142 the capture completes",
    "2.8": "ImportError: fastsafetensors is not installed; please install it to use --load-format fastsafetensors",
    "2.9": "a BF16 checkpoint with --quantization=mxfp4 ends with an IndexError in fused_moe/layer.py",
    "2.10": '{"choices":[{"finish_reason":"length","message":{"role":"assistant","content":null,"reasoning":"We"}}]}',
    "2.11": "NCCL rendezvous fails in a Docker bridge network; network_mode: host is needed",
    "2.12": "without pinning NCCL to the RoCE interfaces it deadlocks silently: a hung process and no output",
    "2.13": "(raylet) 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other "
    "reasons; adjust RAY_memory_monitor_refresh_ms",
    "2.14": "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",
    "2.16": "NCCL INFO NET/IB : No device found.\nNCCL INFO Using network Socket",
    "2.17": "RuntimeError: Gloo connectFullMesh failed with [/gloo/transport/tcp/pair.cc:144] no error\n"
    "[gloo] connect to 127.0.0.1:41877: Connection refused",
    "2.18": "the gauge vllm:gpu_prefix_cache_hit_rate is not present in /metrics of vLLM 0.19.0",
    "3.1": "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory; ulimit -l is 8192, memlock is limited",
    "3.4": "AttributeError: module 'cutlass.cute.nvgpu' has no attribute 'OperandMajorMode'",
    "3.5": "WARNING [envs.py:1720] Unknown vLLM environment variable detected: VLLM_USE_B12X_MOE",
    "4.1": "UCX hooks mmap and its rcache grows by 14 MB per request until the node has no memory; "
    "UCX_RCACHE_MAX_UNRELEASED=1024 stops it",
    "4.2": "under load the unified memory is exhausted and the host freezes hard; a reserve makes an OOM of it",
    "4.4": "a too high --gpu-memory-utilization leaves 1 GB of headroom: unified memory, so the host swaps or crashes",
}  # fmt: skip
RENDERED = {"0": "deepseek-v4-flash-sglang", "1": "minimax-m2.7-fp8-sglang", "2": "minimax-m2.7-nvfp4"}


def too_large() -> Context:
    """229 GB over two nodes, as 1.9 counts them."""
    where = planned(M27_FP8)
    return replace(where, ledgers=ledgers(M27_FP8, where.facts, {}, NODES, "x"))


def firing_codes(case: Recipe | Context) -> set[str]:
    """Codes of the rules on it, and for a recipe also of the engine's own checks."""
    if isinstance(case, Context):
        return {finding.code for finding in check_all(case)}
    return {finding.code for finding in (*rehearse(case), *check_all(planned(case)))}


def on_the_nodes(code: str) -> bool:
    """True if the code fires on the nodes that its own case describes."""
    tables = [table.FIRING for table in (test_rules, host_cases, fabric_cases, recipe_cases)]
    return any(code in firing_codes(table[code]) for table in tables if code in table)


def render_ranks(number: str, rdma: bool = True) -> Iterator[RankSpec]:
    """The ranks rendered from the report's own recipe as we ship it."""
    name = RENDERED.get(number[0], "deepseek-v4-flash")
    asked = shipped(name)
    yield from engine(asked.engine.name).render(asked, placement(rdma=rdma), hub_context())


def find_codes(text: str) -> list[str]:
    return CODE.findall(text)


@pytest.mark.full
@pytest.mark.parametrize("line", LINES, ids=lambda line: line.number)
def test_what_is_named_before_a_start_fires(line: Line) -> None:
    """Guards the column `before`: on the report's configuration, or on the nodes that the rule's own case describes."""
    found = {code for case in BEFORE.get(line.number, ()) for code in firing_codes(case)}
    found |= firing_codes(too_large()) if line.number == "1.9" else set()
    found |= (
        {finding.code for finding in review(DS4, tuple(render_ranks("3.7", rdma=False)))}
        if line.number == "3.7"
        else set()
    )
    for code in find_codes(line.before):
        assert code in code_pages() and (code in found or on_the_nodes(code)), code
    assert not BEFORE.get(line.number) or found & set(find_codes(line.before))


@for_each("line", LINES, ids=lambda line: line.number)
def test_what_is_named_after_a_failure_is_the_diagnosis(line: Line) -> None:
    """Guards the column `after`: the report's own line is diagnosed as that cause."""
    found = {cause.code for both in named_causes(LOGS.get(line.number, "")) for cause in both}
    assert set(find_codes(line.after)) <= found


@for_each("line", [line for line in LINES if "`" in line.ours], ids=lambda line: line.number)
def test_what_we_set_is_in_the_commands(line: Line) -> None:
    """Guards the last column: the launcher sets it for the report's recipe without being reported."""
    specs = list(render_ranks(line.number))
    env = {f"{name}={value}" for spec in specs for name, value in spec.env.items()}
    words = " ".join(" ".join(docker.run(spec, "x").argv) for spec in specs)
    for setting in re.findall(r"`(.*?)`", line.ours):
        assert setting in env or setting in words, setting


def test_expert_parallelism_is_weighed() -> None:
    """Guards 1.8: the advisor lists tensor and expert parallelism for MiniMax-M2.7 with what each costs."""
    splits = advise(shipped("minimax-m2.7-nvfp4"), {}).splits
    assert {(s.parallelism.tp, s.parallelism.ep) for s in splits if s.cost} >= {(2, False), (2, True)}


def test_workers_are_started_before_the_head() -> None:
    """Guards 3.2, the order of forum thread 372268."""
    specs = tuple(render_ranks("3.2"))
    plan = Plan("x", shipped("deepseek-v4-flash"), Cluster("", (), ""), placement(), specs, (), (), "", 0, "")
    assert [[one.rank for one in group] for group in start_groups(plan.recipe, plan.specs)] == [[1], [0]]


def test_every_report_has_its_lines() -> None:
    """Guards that no row is lost: the tables' own lines, and those of the text that state a rule."""
    count = {seed: sum(line.number.startswith(f"{seed}.") for line in LINES) for seed in range(5)}
    assert count == {0: 13, 1: 11, 2: 18, 3: 7, 4: 6}
    assert len({line.number for line in LINES}) == len(LINES)

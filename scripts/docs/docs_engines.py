"""docs/reference/engines.md: engine by engine what is supported, from which version, and how it was tested.

Versions, options, metric names and phases come from the code and its data; the prose and the tests are written here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sparkwright.engines.catalog import ENGINES
from sparkwright.engines.dialect import dialect
from sparkwright.engines.flag_data import FlagData, flag_data, versions
from sparkwright.engines.tables import SEPARATE, emitted, load_table, metric_names
from sparkwright.engines.variants import shipped_variants
from sparkwright.engines.version import version_key

if TYPE_CHECKING:
    from sparkwright.engines.engine import Engine


@dataclass(frozen=True, slots=True)
class Described:
    """The facts that no code reports: title, how it spans nodes, other work at the start, limits, and the tests that
    were made."""

    title: str
    spans: str
    start: str
    limits: tuple[str, ...]
    tested: tuple[str, ...]


TOLD = {
    "vllm": Described(
        "vLLM",
        "its own multi-node mode: `vllm serve` on every node, `--nnodes`, `--node-rank`, `--headless` on workers",
        "One program a rank. Workers first, then the head; ranks meet at `serving.master_port` on the head's fabric "
        "address. The key goes through `VLLM_API_KEY` in a 0600 file, and covers `/v1` only: that is vLLM's own rule.",
        (
            "Pipeline parallelism with MTP is refused (the draft layer needs the last stage's hidden state).",
            "Pipeline and data parallelism over nodes are rendered and checked, and were not tried on GPUs.",
        ),
        (
            "Real vLLM 0.21.0, TP 2 over two nodes with one H200 each, runtime process: "
            "[acceptance](../acceptance/vllm-0.21.0-2x-h200.md): streamed chat, tool call, killed, frozen and misled "
            "ranks; MiniMax-M2.7's dimensions as NVFP4 on Marlin.",
            "The simulator (flags, log, metrics, API) on two system containers with sshd and dockerd, both runtimes.",
        ),
    ),
    "vllm-ray": Described(
        "vLLM on Ray",
        "a Ray cluster of exactly the launch's nodes, in which one `vllm serve` starts the workers of all nodes",
        "A launcher (engines/launchers/ray_launch.py) on every node starts Ray with fixed ports, one GPU, a 1 GiB "
        "object store and no memory monitor. The head waits until Ray itself names all nodes with a GPU each, and only "
        "then runs vLLM: a cluster that comes up short is named before weights are read. Ray listens on every "
        "interface whatever it is configured, so ranks need this launch's token (Ray 2.52 and later; older ones get a "
        "warning). Variables that belong to one node are kept from travelling with the head's environment.",
        (
            "Data parallelism over Ray is refused: use vLLM's own mode.",
            "What a worker prints is in the head's log: Ray carries it there.",
            "The image needs Python with `ray`; some vLLM images come without.",
        ),
        (
            "Real vLLM 0.21.0 in real Ray 2.55.1, TP 2 over two nodes with one H200 each: "
            "[acceptance](../acceptance/vllm-0.21.0-2x-h200.md).",
            "Real Ray 2.60 over two network namespaces with a stand-in for vLLM: a missing node, a node of another "
            "launch, SIGTERM, SIGKILL of the head.",
            "Real Ray with the simulator as its vLLM on two system containers.",
        ),
    ),
    "sglang": Described(
        "SGLang",
        "`--nnodes`, `--node-rank`, `--dist-init-addr` at `serving.master_port` on the head's fabric address",
        "One program a rank. SGLang prints all its arguments, the key included, so the key goes in through a 0600 "
        "`--config` file and a wrapper (engines/launchers/sglang_server.py) that masks it in the log.",
        (
            "A fixed size of the KV cache in bytes is refused: SGLang counts tokens (`flags: max-total-tokens`).",
            "CUDA graph capture across nodes is warned of: on two GB10 it stalled for 34 minutes.",
            "With an `entrypoint` of the recipe's own the key is not masked in SGLang's log.",
        ),
        (
            "Real SGLang 0.5.12, TP 2 over two nodes with one H200 each, runtime process: "
            "[acceptance](../acceptance/sglang-0.5.12-2x-h200.md): killed and frozen ranks, relaunch, bench.",
            "The options of all versions are compared with the commands that we write.",
            "A simulated SGLang on two system containers, both runtimes.",
        ),
    ),
    "trtllm": Described(
        "TensorRT-LLM",
        "`mpirun` on the head starts `trtllm-llmapi-launch trtllm-serve` on all nodes",
        "No sshd in containers and no `~/.ssh` in them: each worker's rank is an agent (engines/launchers/"
        "mpi_launch.py) that listens on its fabric address only, runs one command, Open MPI's daemon, and only for "
        "the head that proves that it has this launch's key. Each rank keeps its own node's interfaces and HCAs. "
        "`flags.extra_llm_api_options` becomes the options file. On one node `trtllm-serve` runs without MPI.",
        (
            "`trtllm-serve` has no API key: a recipe that names one, or opens the endpoint to all, is refused.",
            "Open MPI's own daemons listen on all interfaces, whatever their settings; a finding reports it.",
            "The index has no wheel with the sources: see the data file's `source` for what was read instead.",
            "Its version is that of the file's commit; others get warnings, not refusals.",
        ),
        (
            "Real Open MPI 4.1.4 over two network namespaces and on two system containers, with a stand-in for "
            "`trtllm-serve`: wrong key, foreign command, killed agent, killed head.",
            "A simulated TensorRT-LLM under the real mpirun on two system containers, both runtimes.",
            "**The real TensorRT-LLM was not run**: its image and packages were not at hand.",
        ),
    ),
    "llama-cpp": Described(
        "llama.cpp",
        "RPC workers that serve their devices to one `llama-server` (layers are split: `parallelism.pp` = nodes)",
        "Workers listen on their fabric address only, at `serving.master_port`; the protocol has no authentication. "
        "The head waits until its workers listen. Weights are on the head alone. Without `mmap` on GB10, where the "
        "mapped file and the buffers are one memory.",
        (
            "Tensor parallelism, data parallelism and expert parallelism are refused: it splits layers.",
            "The server inside the xllamacpp wheel is built without RPC; it serves from one node.",
        ),
        (
            "The real server of the wheel, on the CPU, by `sparkwright up` in the tests.",
            "Real llama-server and rpc-server on two nodes, on the CPU: [acceptance](../acceptance/llama.cpp-rpc.md).",
            "A simulated llama.cpp on two system containers, both runtimes. No GPU build was run.",
        ),
    ),
    "simulator": Described(
        "The simulator (engine: simulator)",
        "as vLLM",
        "vLLM 0.21.0's log lines, metrics and API, any read version's flags, no model; marked simulated everywhere. "
        "The tests simulate SGLang, TensorRT-LLM and llama.cpp on top of it.",
        ("None of its figures is a measurement.",),
        ("PredictionError with recordings of the real vLLM 0.21.0.",),
    ),
}


def engines_page(made: str) -> str:
    parts = [f"# The engines\n\n{made}\n{INTRO}", overview(), READ, versions_read(), METRICS, metrics()]
    parts += [section(name, engine) for name, engine in ENGINES.items()]
    parts += [VARIANTS, variants_known()]
    return "\n".join(parts)


INTRO = """What sparkwright knows of each engine, from which version, and what was run to prove it.
An option or variable that a version does not have, has renamed, or takes other values for, is refused with the right
name. A version without data is checked against the nearest one, and reported. At the first start of such a version
`up` asks the engine's own parser once, and the answer is kept in the state folder of the machine where you ran `up`.
`sparkwright engines update` does the same without a start, from a wheel, a venv or an image; `sparkwright engines list`
shows where all data comes from. `make engine-data` reads the shipped data again out of the published wheels, whose
names and hashes are in it.
The tests start every shipped recipe in state ready as it is written, on two system containers, with the simulator as
its engine.
"""
READ = """## Versions that were read

A version between two that were read is planned by the nearest one. Of a version whose log was not read, `up` says so
once: phases may be shown wrong, and a rank counts as stuck only after the silence of the longest phase still to come.
"""
METRICS = "## Metrics\n\nOne vocabulary for all; `-`: that engine has no such number, and nothing is made up.\n"


VARIANTS = """## Known forks

`engine.variant` of a recipe names the forks whose build its image has, several joined by `+`. Each adds its options and
variables to those of the version. They were read out of public recipes and patches, and none was run by us.
"""


def variants_known() -> str:
    rows = ["| `engine.variant` | of | what it is | adds | sources |", f"|{'---|' * 5}"]
    for one in shipped_variants().values():
        adds = ", ".join(f"`{name}`" for name in (*one.env, *one.flags, *one.also))
        rows.append(
            f"| `{one.name}` | {one.engine} | {one.title} | {adds} | {' '.join(f'<{url}>' for url in one.see)} |"
        )
    return "\n".join([*rows, ""])


def overview() -> str:
    rows = ["| engine | `engine.name` | spans nodes by | versions with data |", "|---|---|---|---|"]
    for name in ENGINES:
        told = TOLD[name]
        listed = "takes vLLM 0.21.0's" if name == "simulator" else ", ".join(versions(name))
        rows.append(f"| {told.title} | `{name}` | {told.spans} | {listed} |")
    return "\n".join([*rows, ""])


def versions_read() -> str:
    """A row for each version of which anything was read: flags, log words, metrics and routes, memory, a real start."""
    rows = ["| engine | version | flags | log words | metrics, routes | memory | real start |", f"|{'---|' * 7}"]
    for name in SEPARATE:
        other = load_table("read")[name]
        started = other["started"]
        columns = (versions(name), dialect(name).versions, other["counted"], other["memory"])
        every = sorted(
            {one for column in (*columns, started) for one in column}, key=lambda one: version_key(name, one)
        )
        for version in every:
            cells = ["yes" if version in column else "-" for column in columns]
            rows.append(f"| {TOLD[name].title} | {version} | {' | '.join(cells)} | {started.get(version, '-')} |")
    return "\n".join([*rows, ""])


def metrics() -> str:
    shown = [name for name in ENGINES if name not in ("vllm-ray", "simulator")]
    names = dict.fromkeys(key for name in shown for key in metric_names(name))
    rows = [f"| | {' | '.join(shown)} |", f"|---|{'---|' * len(shown)}"]
    for key in names:
        cells = (f"`{found}`" if (found := metric_names(n).get(key)) else "-" for n in shown)
        rows.append(f"| {key} | {' | '.join(cells)} |")
    return "\n".join([*rows, ""])


def section(name: str, engine: Engine) -> str:
    told = TOLD[name]
    parts = [f"## {told.title}\n", f"{told.start}\n", "Limits:"]
    parts += [f"- {text}" for text in told.limits]
    parts += ["\nTested:", *(f"- {text}" for text in told.tested), ""]
    if name not in ("vllm-ray", "simulator"):
        parts += [engine_data(name, engine)]
    return "\n".join([*parts, f"Stops with {engine.stop.signal}, SIGKILL after {engine.stop.grace:g} s.\n"])


def engine_data(name: str, engine: Engine) -> str:
    rows = ["| data | options | variables | what we write is there | read from |", "|---|---|---|---|---|"]
    for version in versions(name):
        found, _ = flag_data(name, version)
        assert found
        rows.append(
            f"| {version} | {len(found.options)} | {len(found.env) or 'not read'} | {lacking(engine, found)} "
            f"| {origin(found)} |"
        )
    return "\n".join([*rows, ""])


def lacking(engine: Engine, found: FlagData) -> str:
    """Options that some recipe may make us write and this version has not."""
    absent = [
        f"`--{name}`"
        for name in emitted(engine.name)
        if f"--{name}" not in found.names and f"--{_(name)}" not in found.names
    ]
    return f"all but {', '.join(absent)}" if absent else "all"


def _(name: str) -> str:
    return name.replace("-", "_")


def origin(found: FlagData) -> str:
    return f"`{found.wheel}` sha256 `{found.sha256[:12]}…`" if found.wheel else "source text, see the data file"

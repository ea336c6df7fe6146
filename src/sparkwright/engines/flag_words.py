"""The right word: what an engine calls a thing that another engine, or another version of it, calls differently.

Only meanings whose names differ are listed; what an engine had before or will have later is computed from the data.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparkwright.engines.flag_data import DATA_OF, FlagData, read_data, versions
from sparkwright.engines.flag_values import Problem
from sparkwright.engines.options import option_name
from sparkwright.engines.version import version_key

ENGINES = ("vllm", "sglang", "trtllm", "llama-cpp")
# One meaning a row, in the order of ENGINES; '' where an engine has no such option. A name before `=` or a blank is the
# option, what follows is written with it. Several, the better first, are separated by `|`.
MEANINGS: tuple[tuple[str, str, str, str], ...] = (
    ("--gpu-memory-utilization", "--mem-fraction-static", "--kv_cache_free_gpu_memory_fraction", ""),
    ("--max-model-len", "--context-length", "--max_seq_len", "--ctx-size"),
    ("--max-num-seqs", "--max-running-requests", "--max_batch_size", "--parallel"),
    ("--max-num-batched-tokens", "--chunked-prefill-size", "--max_num_tokens", "--batch-size"),
    ("--tensor-parallel-size", "--tp-size", "--tp_size", "--split-mode tensor"),
    ("--pipeline-parallel-size", "--pp-size", "--pp_size", "--rpc"),
    ("--data-parallel-size", "--dp-size", "", ""),
    ("--enable-expert-parallel", "--ep-size", "--ep_size", ""),
    ("--nnodes", "--nnodes", "", "--rpc"),
    ("--master-addr", "--dist-init-addr ADDRESS:PORT", "", ""),
    ("--master-port", "--dist-init-addr ADDRESS:PORT", "", ""),
    ("--distributed-timeout-seconds", "--dist-timeout", "", ""),
    ("--kv-cache-dtype", "--kv-cache-dtype", "", "--cache-type-k"),
    ("--model", "--model-path", "", "--model"),
    ("--tokenizer", "--tokenizer-path", "--tokenizer", ""),
    ("--served-model-name", "--served-model-name", "", "--alias"),
    ("--enforce-eager", "--disable-cuda-graph", "", ""),
    ("--max-cudagraph-capture-size", "--cuda-graph-max-bs-decode|--cuda-graph-max-bs", "", ""),
    ("--cudagraph-capture-sizes", "--cuda-graph-bs-decode|--cuda-graph-bs", "", ""),
    ("--no-enable-prefix-caching", "--disable-radix-cache", "", "--no-cache-prompt"),
    ("--moe-backend", "--moe-runner-backend", "", ""),
    ("--block-size", "--page-size", "", ""),
    ("--tool-call-parser", "--tool-call-parser", "--tool_parser", ""),
    ("--reasoning-parser", "--reasoning-parser", "--reasoning_parser", "--reasoning-format"),
    ("--speculative-config", "--speculative-algorithm", "", "--spec-type"),
    ("--quantization", "--quantization", "", ""),
    ("--seed", "--random-seed", "", "--seed"),
    ("--enable-log-requests", "--log-requests", "", ""),
    ("--chat-template", "--chat-template", "--chat_template", "--chat-template-file|--chat-template"),
    ("--trust-remote-code", "--trust-remote-code", "--trust_remote_code", ""),
    ("--config", "--config", "--extra_llm_api_options", ""),
    ("", "--enable-metrics", "", "--metrics"),
)
# Names of guides and old versions that no data file has.
PAST: Mapping[str, Mapping[str, str]] = {
    "vllm": {
        "num-nodes": "--nnodes",
        "disable-log-requests": "--no-enable-log-requests",
        "kv-cache-memory": "--kv-cache-memory-bytes",
        "tp": "--tensor-parallel-size",
        "guided-decoding-backend": "--structured-outputs-config.backend",
        "speculative-model": "--speculative-config",
        "num-speculative-tokens": "--speculative-config",
    },
    "sglang": {
        "num-nodes": "--nnodes",
        "fp8-gemm-runner-backend": "--fp8-gemm-backend",
        "fp4-gemm-runner-backend": "--fp4-gemm-backend",
    },
    "trtllm": {"tp": "--tp_size", "pp": "--pp_size", "ep": "--ep_size", "context-length": "--max_seq_len"},
    "llama-cpp": {"no-mmap": "--load-mode none", "mmap": "--load-mode mmap", "mlock": "--load-mode mlock"},
}
# Values that engines name differently: vLLM's fp8 is e4m3.
VALUES: Mapping[tuple[str, str], Mapping[str, str]] = {("sglang", "kv-cache-dtype"): {"fp8": "fp8_e4m3"}}


@dataclass(frozen=True, slots=True)
class Advice:
    """word: what to write, '' when nothing fits; because: where that comes from."""

    word: str = ""
    because: str = ""


def right_word(data: FlagData, word: str) -> Advice:
    """What to write in place of an option that this version does not have, from what is known for certain."""
    name = option_name(word).partition(".")[0]
    for found in (_spelled(data, name), _past(data, name), _renamed(data, name), _foreign(data, name)):
        if found.word:
            return found
    return Advice()


def owner(data: FlagData, word: str) -> str:
    """The engine that has an option of this name where this one has none; '' when none does."""
    others = (engine for engine in ENGINES if engine != data.engine)
    return next((engine for engine in others if any(_aliases(engine, option_name(word)))), "")


def right_value(engine: str, option: str, values: Sequence[str]) -> str:
    """The value that this engine writes for another engine's; '' when there is none."""
    return VALUES.get((engine, option), {}).get(values[0], "") if values else ""


def written_name(word: str) -> str:
    """`--dist-init-addr` of `--dist-init-addr ADDRESS:PORT` and of `--x=y`; a dotted key is left off, too."""
    return word.split(" ")[0].split("=")[0].partition(".")[0]


def _spelled(data: FlagData, name: str) -> Advice:
    """The same name with other dashes, and `--no-` before an option that is off unless it is given."""
    same = next((s for s in data.names if option_name(s) == name and s.startswith("--")), "")
    if same:
        return Advice(same, f"{data.engine} writes it so")
    bare = f"--{name.removeprefix('no-')}"
    if name.startswith("no-") and bare in data.names and data.options[data.names[bare]].kind == "flag":
        return Advice(f"nothing: {bare} is off unless it is given", "it is a plain switch")
    return Advice()


def _past(data: FlagData, name: str) -> Advice:
    word = PAST.get(data.engine, {}).get(name, "")
    return Advice(word, "renamed") if written_name(word) in data.names else Advice()


def _renamed(data: FlagData, name: str) -> Advice:
    """What a version that still had it named instead."""
    for version in reversed(versions(data.engine)):
        option = read_data(data.engine, version).find(f"--{name}")
        if option and option.replaced_by and written_name(option.replaced_by) in data.names:
            return Advice(option.replaced_by, f"{data.engine} {version} already named it")
    return Advice()


def _foreign(data: FlagData, name: str) -> Advice:
    """The option with the meaning that this word has in another engine, which may know it by an alias."""
    mine = ENGINES.index(data.engine) if data.engine in ENGINES else -1
    for place, engine in enumerate(ENGINES):
        if mine >= 0 and place != mine and (row := _meaning(engine, place, name)):
            best = next((w for w in row[mine].split("|") if written_name(w) in data.names), "")
            if best:
                return Advice(best, f"--{name} is {engine}'s word")
    return Advice()


def _meaning(engine: str, place: int, name: str) -> tuple[str, ...] | None:
    spellings = {name} | set(_aliases(engine, name))
    rows = (row for row in MEANINGS if spellings & {option_name(written_name(w)) for w in row[place].split("|") if w})
    return next(rows, None)


def _aliases(engine: str, name: str) -> Iterator[str]:
    """All names of the option that another engine's newest version knows by this one."""
    data = read_data(engine, versions(engine)[-1])
    for spelled in (f"--{name}", f"-{name}", f"--{name.replace('-', '_')}"):
        if spelled in data.names:
            yield from (option_name(s) for s in data.options[data.names[spelled]].spellings)


def history(engine: str, version: str, spelled: str) -> str:
    """`first in 0.24.0` or `last in 0.27.1, gone in 0.30.0`, of the versions with data; '' if none has it."""
    having = [v for v in versions(engine) if spelled in read_data(engine, v).names]
    return in_words(engine, version, having)


def variable_history(engine: str, version: str, name: str) -> str:
    """The same for an environment variable."""
    return in_words(engine, version, [v for v in versions(engine) if name in read_data(engine, v).env])


def value_history(engine: str, version: str, option: str, problem: Problem) -> str:
    """The same for a value that this version's option does not take."""
    having = []
    for one in versions(engine):
        found = read_data(engine, one).find(f"--{option}")
        if found and problem.value in map(str, found.allowed(problem.key)):
            having.append(one)
    return in_words(engine, version, having) if problem.value else ""


def in_words(engine: str, version: str, having: list[str]) -> str:
    of = DATA_OF.get(engine, engine)
    here = version_key(of, version)
    older = [v for v in having if version_key(of, v) < here]
    newer = [v for v in having if version_key(of, v) > here]
    if newer:
        until = "on" if newer[-1] == versions(engine)[-1] else f"to {newer[-1]}"
        return f"{of} has it from {newer[0]} {until}"
    if older:
        gone = next((v for v in versions(engine) if version_key(of, v) > version_key(of, older[-1])), version)
        return f"{of} had it up to {older[-1]}, and no longer in {gone}"
    return ""

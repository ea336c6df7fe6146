"""The simulator's own settings, all from the environment, read once. Everything else comes from vLLM's flags."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkwright.domain.values import dataclass

PREFIX, _FORMER_PREFIX = "SPARKWRIGHT_SIMULATOR_", "SPARKWRIGHT_TWIN_"
MEMORY_GIB, BOOT_SCALE = 119.7, 0.06
"""A tiny model takes vLLM about 60 s to start (captures a-tiny, m1); 0.06 of that is about 4 s."""

_NUMBERS = ("memory_gib", "weights_gib", "overhead_gib", "gpus", "prefill_tps", "step_ms", "dead_s", "shm_warn_s")
PHASES = ("join", "load", "compile", "kv", "graphs", "serve")
AT = ("die", "freeze", "oom")
# What is wrong with its answers: wrong@NAME.
WRONG = (
    *("tool_text", "tool_cliff", "tool_choice", "one_call", "loose_types", "stream_arguments", "results"),
    *("think_leaks", "think_eats", "stream_text", "schema", "choices", "stop", "logprobs", "usage", "short"),
    *("responses", "messages", "window", "crosstalk", "stale_cache", "unsteady", "drafts"),
)
COUNTED = ("die_after", "freeze_after", "spin_after")
VALUED = (*COUNTED, "leak", "grow", "accept", "hits", "slow_load", "slow")
PLAIN = ("ignore_sigterm", "garbage", "freeze_api", "no_comm", "odd_lines")


@dataclass(frozen=True, slots=True)
class SimulatorSettings:
    """Sizes in GiB, times in seconds, rates as named: of SPARKWRIGHT_SIMULATOR_ and the name in capitals where nothing
    else is given. `None` means: work it out."""

    memory_gib: float = MEMORY_GIB  # of one simulated device (GB10: what CUDA sees of 128 GB)
    free_gib: float = 111.7  # free of it at start; default: 8 GiB less than all
    weights_gib: float | None = None  # of the whole model; else those of the model folder
    overhead_gib: float | None = None  # activations and context of one rank; else estimated from the config
    gpus: float = 1  # simulated devices of this node
    boot_scale: float = BOOT_SCALE  # SPARKWRIGHT_SIMULATOR_TIME_SCALE: 1 is real time, 0 as fast as possible
    token_scale: float = 1.0  # the same for prefill and decode; SPARKWRIGHT_SIMULATOR_TIME_SCALE sets both
    prefill_tps: float | None = None  # prompt tokens per second, instead of the estimate
    step_ms: float | None = None  # one decode step of one sequence, instead of the estimate
    dead_s: float = 60.0  # from a lost rank to the engine's end (60 s after the NCCL warning)
    shm_warn_s: float = 60.0  # how long a rank may be silent before the shared-memory line, again and again
    stats_s: float = 10.0  # VLLM_LOG_STATS_INTERVAL: the loggers line
    fault: str = ""  # see Faults
    control: str = ""  # a file with the same text, read again whenever it changes
    api_keys: tuple[str, ...] = ()  # VLLM_API_KEY
    wrong_interface: str = ""  # GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME or VLLM_HOST_IP, when one names the loopback
    hub: str = ""  # HF_HUB_CACHE, or hub/ in HF_HOME: where a model named by its hub id is looked for
    version: str = ""  # whose flags it takes, of the versions in engines/data
    long_context_allowed: bool = False  # VLLM_ALLOW_LONG_MAX_MODEL_LEN


def settings_from(env: Mapping[str, str]) -> SimulatorSettings:
    """Raises ValueError, naming the variable, when a number is not one. Names before 0.2.0 (`..._TWIN_`) are read."""
    former = {name: value for name, value in env.items() if name.startswith(_FORMER_PREFIX)}
    env = {PREFIX + name.removeprefix(_FORMER_PREFIX): value for name, value in former.items()} | dict(env)
    numbers: dict[str, Any] = {name: value for name in _NUMBERS if (value := _number(env, name)) is not None}
    scale, token_scale, free = _number(env, "time_scale"), _number(env, "token_scale"), _number(env, "free_gib")
    numbers["memory_gib"] = memory = numbers.get("memory_gib") or MEMORY_GIB
    home = env.get("HF_HOME") or env.get("HOME", "/root") + "/.cache/huggingface"
    return SimulatorSettings(
        **numbers,
        free_gib=max(memory - 8.0, 0.0) if free is None else free,
        boot_scale=BOOT_SCALE if scale is None else scale,
        token_scale=next((one for one in (token_scale, scale) if one is not None), 1.0),
        stats_s=float(env.get("VLLM_LOG_STATS_INTERVAL") or 10.0),
        fault=env.get(PREFIX + "FAULT", ""),
        control=env.get(PREFIX + "CONTROL", ""),
        api_keys=tuple(k for k in (env.get("VLLM_API_KEY"),) if k),
        wrong_interface=_wrong_interface(env),
        hub=env.get("HF_HUB_CACHE") or home + "/hub",
        version=env.get(PREFIX + "VERSION", ""),
        long_context_allowed=env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "0") not in ("0", ""),
    )


def _number(env: Mapping[str, str], name: str) -> float | None:
    variable = PREFIX + name.upper()
    text = env.get(variable, "").strip()
    try:
        return float(text) if text else None
    except ValueError:
        raise ValueError(f"{variable}={text!r} is not a number") from None


def _wrong_interface(env: Mapping[str, str]) -> str:
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        if env.get(name, "").lstrip("=") == "lo":
            return f"{name}=lo"
    host = env.get("VLLM_HOST_IP", "")
    # Simulated nodes on one machine have fabric addresses like 127.0.100.1; those do reach each other.
    return f"VLLM_HOST_IP={host}" if host in ("127.0.0.1", "localhost") else ""


@dataclass(frozen=True, slots=True)
class InjectedFault:
    name: str
    phase: str = ""
    value: float = 0.0
    exit_code: int = 1
    rank: int | None = None


def parse(text: str) -> tuple[InjectedFault, ...]:
    """Raises ValueError with the word that is not a fault."""
    return tuple(_one(word.strip()) for word in text.replace("\n", ",").split(",") if word.strip())


def _one(word: str) -> InjectedFault:
    rank: int | None = None
    if word.startswith("rank="):
        number, _, word = word.removeprefix("rank=").partition(":")
        rank = int(number)
    head, _, option = word.partition(":")
    exit_code = int(option.removeprefix("exit=")) if option.startswith("exit=") else 1
    name, at, phase = head.partition("@")
    key, eq, value = head.partition("=")
    if at and ((name in AT and phase in PHASES) or (name == "wrong" and phase in WRONG)):
        return InjectedFault(name, phase=phase, exit_code=exit_code, rank=rank)
    if eq and key in VALUED:
        return InjectedFault(key, value=float(value), exit_code=exit_code, rank=rank)
    if head in PLAIN:
        return InjectedFault(head, rank=rank)
    raise ValueError(
        f"unknown fault {word!r}; known: {'@PHASE '.join(AT)}@PHASE {'=N '.join(VALUED)}=N {' '.join(PLAIN)} "
        f"wrong@NAME with {', '.join(WRONG)}"
    )


class Faults:
    """The present faults of this rank. `refresh` reads the control file again when it has changed."""

    def __init__(self, text: str, control: str, rank: int) -> None:
        self.rank = rank
        self.control = Path(control) if control else None
        self._seen = -1.0
        self._given = parse(text)
        self.all = self._mine(self._given)
        self.refresh()

    def _mine(self, faults: tuple[InjectedFault, ...]) -> tuple[InjectedFault, ...]:
        return tuple(f for f in faults if f.rank in (None, self.rank))

    def refresh(self) -> None:
        """A missing file leaves what the environment gave; an unreadable word is ignored until the file changes."""
        if self.control is None or not self.control.is_file():
            return
        changed = self.control.stat().st_mtime
        if changed == self._seen:
            return
        self._seen = changed
        try:
            self.all = self._mine(parse(self.control.read_text(encoding="utf-8")))
        except ValueError:
            self.all = self._mine(self._given)

    def at(self, phase: str) -> InjectedFault | None:
        return next((f for f in self.all if f.phase == phase), None)

    @property
    def wrong(self) -> frozenset[str]:
        return frozenset(f.phase for f in self.all if f.name == "wrong")

    def value(self, name: str) -> float | None:
        return next((f.value for f in self.all if f.name == name), None)

    def has(self, name: str) -> bool:
        return any(f.name == name for f in self.all)

    def due(self, name: str, requests: int) -> InjectedFault | None:
        """A fault of COUNTED, once so many requests have been answered."""
        return next((f for f in self.all if f.name == name and requests >= f.value), None)

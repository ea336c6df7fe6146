"""ENG008: environment variables with an engine's own prefix that the engine does not read, or soon no longer."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from sparkwright.domain.finding import Finding, Severity
from sparkwright.engines.flag_data import DATA_OF, FlagData, flag_data
from sparkwright.engines.flag_words import variable_history

# Variables that an engine's own prefix claims; others belong to libraries.
PREFIXES: Mapping[str, tuple[str, ...]] = {
    "vllm": ("VLLM_",),
    "sglang": ("SGLANG_", "SGL_"),
    "trtllm": ("TRTLLM_", "TLLM_"),
    "llama-cpp": ("LLAMA_",),
}


def check_variables(engine: str, version: str, env: Iterable[str], extra: Iterable[str] = ()) -> tuple[Finding, ...]:
    """Findings for variables of the engine's own prefix. extra: what the image's own build reads besides."""
    data, said = flag_data(engine, version)
    prefixes = PREFIXES.get(DATA_OF.get(engine, engine), ())
    if data is None or not data.env or not prefixes:
        return ()
    own = [name for name in env if name.startswith(prefixes) and name not in set(extra)]
    severity = Severity.WARN if said else Severity.OVERRIDE
    late = [_late(data, name) for name in own if name in data.replaced]
    return (*late, *(_unread(data, version, name, severity) for name in own if not _reads(data, name)))


def _reads(data: FlagData, name: str) -> bool:
    """SGLang takes SGL_X as SGLANG_X (environ.py)."""
    return name in data.env or (data.engine == "sglang" and name.replace("SGL_", "SGLANG_", 1) in data.env)


def _unread(data: FlagData, version: str, name: str, severity: Severity) -> Finding:
    when = variable_history(data.engine, version, name)
    return Finding(
        "ENG008", severity, f"env.{name}", f"{data.engine} {data.version} does not read {name}",
        evidence=when,
        cause="it is ignored without a word, and what it should do does not happen",
        remedy=_hint(data, name, when),
    )  # fmt: skip


def _hint(data: FlagData, name: str, when: str) -> str:
    """An option of that name, else the variable that is meant, else where an image's own variables are declared."""
    prefix = next(p for p in PREFIXES[data.engine] if name.startswith(p))
    bare = name.removeprefix(prefix).removeprefix("ARG_").lower()
    for option in (f"--{bare.replace('_', '-')}", f"--{bare}"):
        if option in data.names:
            return f"write the option {option}: this version has no variable for it"
    if when:
        return f"leave it out, or take another version: {when}"
    if near := get_close_matches(name, data.env, 1, 0.85):
        return f"did you mean {near[0]}?"
    return "remove it; if the image's own build reads it, name it in engine.extra_env"


def _late(data: FlagData, name: str) -> Finding:
    new = data.replaced[name]
    return Finding(
        "ENG007", Severity.WARN, f"env.{name}", f"{name} is on its way out in {data.engine} {data.version}",
        evidence=new if " " in new else "",
        remedy=f"use {new}" if new and " " not in new else "use what the engine names instead" if new else "remove it",
    )  # fmt: skip

"""Steps of advice in the words of one engine: without other engines' options, and without a value it just refused."""

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from sparkwright.engines.tables import SEPARATE

# How texts name the engines whose options are known.
SPOKEN = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM|TRT-LLM", "llama-cpp": r"llama\.cpp"}
_FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]{2,60}")
_REFUSED = re.compile(
    r"(?i:backend|choice|value|method|type|dtype|option)[:= ]{1,3}[\"'`]?(?:[A-Z]\w*\.)?(?P<value>\w{3,60})[\"'`]?,? "
    r"(?:is |are )?(?i:not (?:valid|supported|available)|invalid|unsupported)"
    r"|[Ii]nvalid choice: [\"'](?P<choice>\w{3,60})"
)


@cache
def options(engine: str) -> frozenset[str]:
    """All long options of its versions, with dashes."""
    raw = json.loads((files("sparkwright.engines.data") / f"{engine}.json").read_text(encoding="utf-8"))
    names = (name for row in raw["options"] for name in (f"--{row['name']}", *row.get("aliases", ())))
    return frozenset(name for name in names if name.startswith("--"))


def fitting(steps: Sequence[str], engine: str, line: str) -> tuple[str, ...]:
    """The steps that suit an engine's log; all of them if the engine is not known. line: of the failure.

    A step for another engine is left out; of one with a remark for this engine (`--a 1   # SGLang: --b 1`) the remark
    is the step. A step that sets the value that the line refuses is left out, too.
    """
    refused = {value for found in _REFUSED.finditer(line) for value in found.groups() if value}
    kept = [step for step in steps if not any(_sets(step, value) for value in refused)] or list(steps)
    if engine not in SEPARATE:
        return tuple(kept)
    own = [found for step in kept if (found := _of_engine(step, engine))]
    return tuple(own or [step for step in kept if not _FLAG.search(step)] or kept)


def is_of_another(key: str, engine: str) -> bool:
    """True if the key names an engine (`llamacpp-...`), and not this one; False for '', an engine not known."""
    named = next((name for name in SEPARATE if key.startswith(f"{name.replace('-', '')}-")), engine)
    return bool(engine) and named != engine


def _sets(step: str, value: str) -> bool:
    return re.search(rf"(?:--[\w-]+[ =]|=)[\"']?{re.escape(value)}\b", step) is not None


def _of_engine(step: str, engine: str) -> str:
    """The step as it is, its part for this engine, or '' for a step of other engines."""
    others = "|".join(name for key, name in SPOKEN.items() if key != engine)
    if re.match(rf"(?:{others})\b[^:]{{0,40}}: ", step):
        return ""
    command, remark, rest = step.partition("#")
    before = re.split(rf"[(;,]\s*(?:{'|'.join(SPOKEN.values())})\b", command)[0]
    foreign = frozenset().union(*(options(other) for other in SEPARATE if other != engine)) - options(engine)
    if any(flag in foreign for flag in _FLAG.findall(before)):
        own = re.search(rf"\b(?:{SPOKEN[engine]}):? (?P<own>--?[a-z][^;)#,]{{1,120}})", step)
        return own["own"].strip() if own else ""
    mentions = rf"\b(?:{others}):? --?[a-z]"
    if remark and re.search(mentions, rest):
        return before.strip()
    return before.strip() if re.search(mentions, command) else step

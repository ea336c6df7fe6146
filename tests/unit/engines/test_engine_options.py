"""The program that asks an engine's own parser: what it makes of argparse's arguments."""

import argparse
import dataclasses
import json
from typing import Any, Literal

from sparkwright.engines.launchers import engine_options
from sparkwright.engines.own_data import OptionsOrigin, from_answer, from_text, to_text


def parse_human(text: str) -> int:
    """vLLM's: 1k is 1,000, 1K is 1,024."""
    factors = {"k": 1000, "K": 1024}
    return int(text[:-1]) * factors[text[-1]] if text[-1] in factors else int(text)


def dict_or_text(text: str) -> Any:
    return json.loads(text) if text.startswith("{") else text


class EnableDisable(argparse.BooleanOptionalAction):
    """An action like vLLM's: `--enable-x` is also negated by `--disable-x`."""

    def __init__(self, option_strings: list[str], dest: str, **rest: Any) -> None:
        super().__init__(option_strings, dest, **rest)
        self.option_strings = [*self.option_strings, f"--disable-{dest.removeprefix('enable_')}"]


class DeprecatedAction(argparse.Action):
    def __init__(self, error_message: str, **rest: Any) -> None:
        super().__init__(nargs=0, **rest)
        self.error_message = error_message


@dataclasses.dataclass
class Inner:
    backend: Literal["a", "b"] = "a"
    depth: int = 3


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    made.add_argument("model_tag", nargs="?")
    made.add_argument("--model", "-m", type=str)
    made.add_argument("--length", type=parse_human)
    made.add_argument("--fraction", type=float)
    made.add_argument("--ranks", "--tp", "-tp", type=int, choices=[1, 2, None])
    made.add_argument("--kind", type=lambda text: text.lower().replace("-", "_"), choices=["fp8", "int_4"])
    made.add_argument("--inner-config", type=lambda text: Inner(**json.loads(text)))
    made.add_argument("--method", type=str, metavar=["b", "a"])  # type: ignore[arg-type]
    made.add_argument("--devices", type=lambda text: [part.strip() for part in text.split(",")])
    made.add_argument("--rope", type=json.loads)
    made.add_argument("--either", type=dict_or_text)
    made.add_argument("--graphs", action=argparse.BooleanOptionalAction)
    made.add_argument("--enable-cache", action=EnableDisable)
    made.add_argument("--quiet", action="store_true")
    made.add_argument("--names", nargs="+")
    made.add_argument("--lora", action="append")
    made.add_argument("--headers", nargs="?")
    made.add_argument("--aged", type=int, help="[DEPRECATED] Use --length instead. It goes away.")
    made.add_argument("--dead", action=DeprecatedAction, error_message="--dead is gone. Use --alive instead.")
    return made


def test_arguments_become_options() -> None:
    """Guards each kind of argument that vLLM and SGLang register, and that the data survives being kept."""
    found = engine_options.option_rows(
        parser(), {"inner_config": dict(engine_options._limits(Inner))}, {"model": ["m"]}
    )
    old = {"deprecated": "[DEPRECATED] Use --length instead."}
    dead = {"deprecated": "--dead is gone. Use --alive instead.", "refused": True}
    assert found == {
        "model": {"kind": "value", "type": "str", "aliases": ["-m"], "known": ["m"]},
        "length": {"kind": "value", "type": "human-int"},
        "fraction": {"kind": "value", "type": "float"},
        "ranks": {"kind": "value", "type": "int", "choices": [1, 2], "aliases": ["--tp", "-tp"]},
        "kind": {"kind": "value", "type": "str", "choices": ["fp8", "int_4"], "folded": True},
        "inner-config": {"kind": "json", "keys": {"backend": ["a", "b"], "depth": None}},
        "method": {"kind": "value", "type": "str", "known": ["a", "b"]},
        "devices": {"kind": "value", "type": "str"},
        "rope": {"kind": "json"},
        "either": {"kind": "value", "type": "json-or-str"},
        "graphs": {"kind": "bool"},
        "enable-cache": {"kind": "bool", "negatives": ["--no-enable-cache", "--disable-cache"]},
        "quiet": {"kind": "flag"},
        "names": {"kind": "list", "type": "str"},
        "lora": {"kind": "append", "type": "str"},
        "headers": {"kind": "maybe", "type": "str"},
        "aged": {"kind": "value", "type": "int"} | old,
        "dead": {"kind": "flag"} | dead,
    }
    text = json.dumps({"version": "1", "build": "", "env": [], "options": found})
    kept = from_text(to_text(from_answer(f"a line of an import\n{text}\n", OptionsOrigin("vllm", "parser", "p", 1.0))))
    assert kept.options["kind"].folded and kept.names["--disable-cache"] == "enable-cache"

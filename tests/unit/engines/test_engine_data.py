"""The tools that make the flag data: what they read out of sources and help texts."""

import zipfile
from pathlib import Path

import pytest

from sparkwright.engines.wheels.llama import parse_help
from sparkwright.engines.wheels.sglang import sglang_env, sglang_options
from sparkwright.engines.wheels.sources import Sources
from sparkwright.engines.wheels.trtllm import reference_options, trtllm_options
from sparkwright.engines.wheels.vllm import Registered, vllm_env

CONFIG = """
from typing import TYPE_CHECKING, Any, Literal
from pydantic import Field, SkipValidation
from .other import Inner
if TYPE_CHECKING:
    from vllm.config.other import Method
else:
    Method = Any
Dtype = Literal["auto", "fp8"]
@config
class CacheConfig:
    dtype: Dtype = "auto"
    fraction: float = Field(default=0.92, gt=0, le=1)
    method: Method | str | None = None
    block: SkipValidation[int] = None
    inner: Inner | None = None
    on: bool = False
    names: list[str] = Field(default_factory=list)
"""
OTHER = """
from typing import Literal
Method = Literal["ngram", "mtp"]
@config
class Inner:
    backend: Literal["a", "b"] = "a"
    depth: int = 3
    _own: int = 0
"""
ARGS = """
from vllm.config import CacheConfig
class EngineArgs:
    def add_cli_args(parser):
        kw = get_kwargs(CacheConfig)
        group = parser.add_argument_group(title="x")
        for_later = kw["names"]
        group.add_argument("--kv-dtype", "-kd", **kw["dtype"])
        group.add_argument("--fraction", **{**kw["fraction"], "default": None})
        group.add_argument("--method", **kw["method"])
        group.add_argument("--block-size", **kw["block"])
        group.add_argument("--inner-config", **kw["inner"])
        group.add_argument("--on", **kw["on"])
        group.add_argument("--names", **for_later)
        parser.add_argument("--quiet", action="store_true", deprecated=True)
"""


def wheel_of(path: Path, files: dict[str, str]) -> Sources:
    with zipfile.ZipFile(path, "w") as out:
        for name, text in files.items():
            out.writestr(name, text)
    return Sources(path)


@pytest.fixture
def vllm_wheel(tmp_path: Path) -> Sources:
    files = {"vllm/config/__init__.py": CONFIG, "vllm/config/other.py": OTHER, "vllm/engine/arg_utils.py": ARGS}
    return wheel_of(tmp_path / "vllm-0.0.0-py3-none-any.whl", files)


def test_fields_become_options_as_vllm_makes_them(vllm_wheel: Sources) -> None:
    """Types, choices, bounds, keys, aliases and overrides come out of the syntax tree without an import."""
    options = Registered(vllm_wheel).all()
    assert options["kv-dtype"] == {
        "kind": "value", "type": "str", "choices": ["auto", "fp8"], "default": "auto", "aliases": ["-kd"],
    }  # fmt: skip
    assert options["fraction"] == {"kind": "value", "type": "float", "range": {"gt": 0, "le": 1}}
    assert options["method"] == {"kind": "value", "type": "str", "known": ["mtp", "ngram"]}
    assert options["block-size"]["type"] == "int"
    assert options["inner-config"] == {"kind": "json", "keys": {"backend": ["a", "b"], "depth": None}}
    assert options["on"] == {"kind": "bool", "default": False}
    assert options["names"] == {"kind": "list", "type": "str"}
    assert options["quiet"] == {"kind": "flag", "deprecated": True}


@pytest.mark.parametrize("at_run_time", ["Any", "object", "str"])
def test_names_for_type_checkers_are_read(tmp_path: Path, at_run_time: str) -> None:
    """vLLM 0.27.1 went over from Any to str: its quantization methods were no longer seen, and nothing was checked."""
    config = CONFIG.replace("Method = Any", f"Method = {at_run_time}")
    files = {"vllm/config/__init__.py": config, "vllm/config/other.py": OTHER, "vllm/engine/arg_utils.py": ARGS}
    options = Registered(wheel_of(tmp_path / "vllm-0.0.0-py3-none-any.whl", files)).all()
    assert options["method"]["known"] == ["mtp", "ngram"]


def test_help_text_becomes_options() -> None:
    """llama.cpp's help: text next to or below its flags, switches with their negatives, choices, variables."""
    rows = [
        "-c,    --ctx-size N                     size of the prompt context",
        "                                        (env: LLAMA_ARG_CTX_SIZE)",
        "-kvo,  --kv-offload, -nkvo, --no-kv-offload",
        "                                        whether to enable KV cache offloading",
        "-fa,   --flash-attn [on|off|auto]       set Flash Attention use",
        "--metrics                               enable metrics",
    ]
    assert parse_help("----- common -----\n\n" + "\n".join(rows)) == {
        "ctx-size": {"kind": "value", "type": "number", "aliases": ["-c"], "env": "LLAMA_ARG_CTX_SIZE"},
        "kv-offload": {"kind": "bool", "negatives": ["-nkvo", "--no-kv-offload"], "aliases": ["-kvo"]},
        "flash-attn": {"kind": "value", "type": "str", "choices": ["on", "off", "auto"], "aliases": ["-fa"]},
        "metrics": {"kind": "flag"},
    }


SGLANG_ARGS = """
from sglang.srt.arg_groups.choices import BACKENDS
from sglang.srt.arg_groups.fields.memory import Memory
from sglang.srt.parsers import ToolParsers
_INPUT_NAMESPACES = [Memory]
def _names():
    from sglang.srt.parsers import NAMES
    return list(NAMES)
class ServerArgs:
    model_path: A[str, Arg(help="Weights.", aliases=["--model"])]
    seed: A[Optional[int], "The seed."] = None
    trace: A[bool, "Trace."] = False
    sizes: A[List[int], Arg(help="Sizes.", nargs="*")] = None
    options: A[Optional[dict], Arg(type_parser=json.loads)] = None
    inner: A[bool, Arg(no_cli=True)] = False
    plain: int = 0
    @staticmethod
    def add_cli_args(parser):
        tools = _names()
        parser.add_argument("--backend", type=str, choices=BACKENDS, default=ServerArgs.seed)
        parser.add_argument("--tool", choices=["auto"] + tools)
        parser.add_argument("--other", choices=list(ToolParsers.Map.keys()))
        parser.add_argument("--old", action=DeprecatedStoreTrueAction, new_flag="--new", help="[Deprecated] Use --new.")
        parser.add_argument("--dead", action=DeprecatedAction, error_message="--dead is gone. Use --alive instead.")
        parser.add_argument("--aged", type=int, action=DeprecatedAliasStoreAction, new_flag="--young")
ServerArgs = defstruct("ServerArgs", [])
"""
MEMORY = """
class Memory(msgspec.Struct):
    cli: A[str, Arg(help="x", cli_name="--cli-name", choices=["a", "b"])] = "a"
"""
CHOICES = "BASE = frozenset({'b', 'a'})\nBACKENDS = list(BASE) + ['c']\nBACKENDS.append('d')\nBACKENDS += ['e']\n"
PARSERS = "NAMES = ['x', 'y']\nclass ToolParsers:\n    Map = {'p': 1, 'q': 2}\n"
ENVIRON = """
class Envs:
    SGLANG_ONE = EnvInt(1)
    SGLANG_TWO = EnvBoolWithAlias(False, deprecated_name="SGLANG_ZWEI")
def _print_deprecated_env(new_name, old_name): ...
_print_deprecated_env("SGLANG_ONE", "SGLANG_EINS")
_OLD = {"SGLANG_DREI": _DeprecatedEnv(note="Pass --three instead.")}
"""


@pytest.fixture
def sglang(tmp_path: Path) -> Sources:
    files = {
        "sglang/srt/server_args.py": SGLANG_ARGS,
        "sglang/srt/arg_groups/choices.py": CHOICES,
        "sglang/srt/arg_groups/fields/memory.py": MEMORY,
        "sglang/srt/parsers.py": PARSERS,
        "sglang/srt/environ.py": ENVIRON,
        "sglang/srt/other.py": "x = get_bool_env_var('SGLANG_READ_ELSEWHERE')",
        "sglang/test/helper.py": "os.environ['SGLANG_OF_TESTS']",
    }
    return wheel_of(tmp_path / "sglang-0.0.0-py3-none-any.whl", files)


def test_sglangs_fields_and_calls_become_options(sglang: Sources) -> None:
    """Annotated fields of ServerArgs and its namespaces, and arguments registered by hand, with lists followed."""
    options = sglang_options(sglang)
    assert options["model-path"] == {"kind": "value", "type": "str", "aliases": ["--model"]}
    assert options["seed"] == {"kind": "value", "type": "int"}
    assert options["trace"] == {"kind": "flag", "default": False}
    assert options["sizes"] == {"kind": "list", "type": "int"}
    assert options["options"] == {"kind": "json"}
    assert options["cli-name"] == {"kind": "value", "type": "str", "choices": ["a", "b"], "default": "a"}
    assert options["backend"]["choices"] == ["a", "b", "c", "d", "e"]
    assert options["tool"]["choices"] == ["auto", "x", "y"]
    assert options["other"]["choices"] == ["p", "q"]
    assert {"inner", "plain"}.isdisjoint(options)


def test_sglangs_retired_flags_keep_their_meaning(sglang: Sources) -> None:
    """A switch, a renamed value, and a flag at which the engine stops: each with its successor."""
    options = sglang_options(sglang)
    assert options["old"] == {"kind": "flag", "deprecated": "[Deprecated] Use --new.", "replaced-by": "--new"}
    assert options["aged"] == {"kind": "value", "type": "int", "deprecated": "deprecated", "replaced-by": "--young"}
    dead = {"kind": "flag", "deprecated": "--dead is gone. Use --alive instead.", "replaced-by": "--alive"}
    assert options["dead"] == dead | {"refused": True}


def test_sglangs_variables_with_those_on_their_way_out(sglang: Sources) -> None:
    """The registry, names read elsewhere, and old names in all three ways of writing so; tests' own are left out."""
    env, old = sglang_env(sglang)
    assert {"SGLANG_ONE", "SGLANG_TWO", "SGLANG_READ_ELSEWHERE"} <= set(env)
    assert "SGLANG_OF_TESTS" not in env
    assert old == {"SGLANG_DREI": "Pass --three instead.", "SGLANG_EINS": "SGLANG_ONE", "SGLANG_ZWEI": "SGLANG_TWO"}


CLICK = """
from tensorrt_llm.builder import BuildConfig
@click.command("serve")
@click.option("--tp_size", "--tensor_parallel_size", type=int, default=1)
@click.option("--backend", type=ChoiceWithAlias(["pytorch", "tensorrt"], {"trt": "tensorrt"}), default="pytorch")
@click.option("--max_seq", type=int, default=BuildConfig.model_fields["max_seq"].default)
@click.option("--trust", is_flag=True, default=False)
@click.option("--dirs", type=click.Path(), multiple=True, default=None)
def serve(): ...
"""


def test_click_options_become_options(tmp_path: Path) -> None:
    """TensorRT-LLM's decorators: aliases, flags, choices with aliases, defaults that another class holds."""
    build = "class BuildConfig:\n    max_seq: int = 7\n"
    files = {"tensorrt_llm/commands/serve.py": CLICK, "tensorrt_llm/builder.py": build}
    assert trtllm_options(wheel_of(tmp_path / "tensorrt_llm-0.0.0.whl", files)) == {
        "tp_size": {"kind": "value", "type": "int", "default": 1, "aliases": ["--tensor_parallel_size"]},
        "backend": {"kind": "value", "type": "str", "choices": ["pytorch", "tensorrt", "trt"], "default": "pytorch"},
        "max_seq": {"kind": "value", "type": "int", "default": 7},
        "trust": {"kind": "flag", "default": False},
        "dirs": {"kind": "append", "type": "str"},
    }


REFERENCE = """
commands:
  serve:
    options:
      config_file: {type: str, default: null, status: beta, multiple: false, is_flag: false, flags: [--config, --old]}
      dirs: {type: Path, default: null, status: beta, multiple: true, is_flag: false, flags: [--dirs]}
      kind: {type: "Choice(['a', 'b-1'])", default: a, status: beta, multiple: false, is_flag: false, flags: [--kind]}
      size: {type: int, default: 1, status: deprecated, multiple: false, is_flag: false, flags: [--size]}
      telemetry: {type: bool, default: true, status: beta, multiple: false, is_flag: true, flags: [--no-t, --t]}
  disaggregated:
    options:
      other: {type: str, default: null, status: beta, multiple: false, is_flag: false, flags: [--other]}
"""


def test_upstreams_list_of_its_command_line_becomes_options() -> None:
    """TensorRT-LLM's own list: Python's repr of choices, negations among the flags, one command of several."""
    assert reference_options(REFERENCE) == {
        "config": {"kind": "value", "type": "str", "aliases": ["--old"]},
        "dirs": {"kind": "append", "type": "str"},
        "kind": {"kind": "value", "type": "str", "choices": ["a", "b-1"], "default": "a"},
        "size": {"kind": "value", "type": "int", "default": 1, "deprecated": True},
        "t": {"kind": "flag", "default": True, "negatives": ["--no-t"]},
    }


def test_vllms_variables_are_names_in_quotes(tmp_path: Path) -> None:
    """envs.py lists most, a few modules read their own; words in prose are none."""
    files = {
        "vllm/envs.py": "environment_variables = {'VLLM_ONE': lambda: 1}  # like VLLM_NONE",
        "vllm/other.py": 'os.getenv("VLLM_TWO")',
    }
    assert vllm_env(wheel_of(tmp_path / "vllm-0.0.0.whl", files)) == (["VLLM_ONE", "VLLM_TWO"], {})

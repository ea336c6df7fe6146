"""The tools that make the flag data: what they read out of sources and help texts."""

import sys
import zipfile
from pathlib import Path

import pytest

from unit.engines.samples import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from engine_data import Registered
from engine_data_llama import parse_help
from engine_data_types import Sources

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


@pytest.fixture
def wheel(tmp_path: Path) -> Sources:
    path = tmp_path / "vllm-0.0.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("vllm/config/__init__.py", CONFIG)
        out.writestr("vllm/config/other.py", OTHER)
        out.writestr("vllm/engine/arg_utils.py", ARGS)
    return Sources(path)


def test_fields_become_options_as_vllm_makes_them(wheel: Sources) -> None:
    """Types, choices, bounds, keys, aliases and overrides come out of the syntax tree without an import."""
    options = Registered(wheel).all()
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


def test_help_text_becomes_options() -> None:
    """llama.cpp's help: text beside or below its flags, switches with their negatives, choices, variables."""
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

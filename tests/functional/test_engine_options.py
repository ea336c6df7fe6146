"""Options read from a real engine, by `up` at the first start of an unread version and by `engines update`."""

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.ports import free_port
from functional.command import UserShell
from functional.tiny_gguf import write_tiny_gguf

xllamacpp = pytest.importorskip("xllamacpp", reason="the wheel that holds llama.cpp's server is not installed")
LATER = "2027.1.12345"  # a version that nobody has read


@pytest.fixture
def user_shell(tmp_path: Path) -> UserShell:
    return UserShell(tmp_path)


def venv_of_a_later_version(folder: Path) -> Path:
    """A Python whose only package is the real xllamacpp, under another version."""
    site = folder / "site"
    about = site / f"xllamacpp-{LATER}.dist-info"
    about.mkdir(parents=True)
    (site / "xllamacpp").symlink_to(Path(xllamacpp.__file__).parent)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: xllamacpp\nVersion: {LATER}\n")
    (about / "RECORD").write_text("xllamacpp/__init__.py,sha256=x,1\n")
    python = folder / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nPYTHONPATH={site} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return python.parent.parent


def recipe(folder: Path, venv: Path, **flags: Any) -> None:
    text = {
        "name": "tiny",
        "title": "Random weights",
        "model": {"path": str(write_tiny_gguf(folder / "tiny.gguf")), "served_name": "tiny"},
        "engine": {"name": "llama-cpp", "version": LATER, "runtime": "process", "venv": str(venv)},
        "serving": {"port": free_port(), "context": 512, "sequences": 2, "batched_tokens": 256, "coherence": False},
        "flags": {"n-gpu-layers": 0, "threads": 2, **flags},
    }
    (folder / "tiny.yaml").write_text(yaml.safe_dump(text))


def option_files(folder: Path) -> list[Path]:
    return sorted((folder / ".local/state/sparkwright/engines").glob("*.json"))


def test_the_first_start_of_an_unread_version_asks_the_engine_once(user_shell: UserShell) -> None:
    """`validate` only warns before the first start. `up` stores the real parser's options; then findings are exact."""
    venv = venv_of_a_later_version(user_shell.folder)
    (user_shell.folder / "cluster.yaml").write_text("name: one\nnodes: [{name: here, ssh: local}]\n")
    recipe(user_shell.folder, venv, nonsense=1)
    code, out, err = user_shell.run("recipes", "validate", "./tiny.yaml")
    assert code == 0 and "ENG001" in out + err and "is the nearest" in out + err
    recipe(user_shell.folder, venv)
    code, out, err = user_shell.run("up", "./tiny.yaml", "--no-supervise", "--force", "a test")
    assert code == 0, out + err
    assert f"options of llama-cpp {LATER}: asking its own parser on here" in out + err
    (path,) = option_files(user_shell.folder)
    assert user_shell.run("down", "tiny")[0] == 0
    data = json.loads(path.read_text())
    assert data["version"] == LATER and len(data["options"]) > 200 and path.stat().st_mode & 0o777 == 0o600
    recipe(user_shell.folder, venv, nonsense=1)
    code, out, err = user_shell.run("recipes", "validate", "./tiny.yaml")
    assert code == 2 and "no option --nonsense" in out + err and "ENG005" not in out + err
    before = path.stat().st_mtime_ns
    code, out, err = user_shell.run("up", "./tiny.yaml", "--no-supervise")
    assert code == 1 and "ENG001" in err and "its own parser" not in out + err
    assert path.stat().st_mtime_ns == before


def test_an_owner_adds_a_version_without_a_checkout(user_shell: UserShell) -> None:
    """`engines update` reads the installed engine, `list` and `show` have its options. A bad file is one line."""
    venv = venv_of_a_later_version(user_shell.folder)
    code, out, err = user_shell.run("engines", "update", "llama-cpp", "--venv", str(venv), "--json")
    assert code == 0, err
    made = json.loads(out)
    assert (made["engine"], made["version"], made["own"]) == ("llama-cpp", LATER, True) and made["options"] > 200
    rows = json.loads(user_shell.run("engines", "list", "--json")[1])
    assert rows["broken"] == [] and [row["version"] for row in rows["engines"] if row["own"]] == [LATER]
    code, out, _ = user_shell.run("engines", "show", "llama-cpp")
    assert code == 0 and LATER in out and "--ctx-size" in out and "by you" in out
    (path,) = option_files(user_shell.folder)
    path.write_text(path.read_text().replace('"flag"', '"\\u001b[2J"', 1))
    code, out, err = user_shell.run("engines", "list")
    assert code == 0 and LATER not in out and f"{path} is not used: options." in err
    code, out, err = user_shell.run("engines", "update", "vllm", "--venv", str(venv))
    assert (code, out) == (2, "") and "vllm in venv" in err and "it is not there" in err


def test_wheels_from_anywhere_are_read_in_bounds(user_shell: UserShell) -> None:
    """Refused: a wheel of another package, a file that is no wheel, sources too deep or too large to read."""
    wheel = user_shell.folder / "vllm-9.9.9-py3-none-any.whl"
    wheel.write_bytes(b"PK\x03\x04 no wheel")
    assert "not a wheel that can be read" in user_shell.run("engines", "update", "--wheel", str(wheel))[2]
    about = "Metadata-Version: 2.1\nName: {}\nVersion: 9.9.9\n"
    for name, more, why in (
        ("click", "x = 1", "the wheel of click"),
        ("vllm", "x = 1", "not a wheel that can be read"),
        ("vllm", "x = " + "(" * 5000, "not a wheel that can be read"),
        ("vllm", "#" * (9 << 20), "larger than the sources of any engine"),
    ):
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as made:
            made.writestr(f"{name}-9.9.9.dist-info/METADATA", about.format(name))
            made.writestr("vllm/entrypoints/cli/serve.py", more)
            made.writestr("vllm/engine/arg_utils.py", more)
        code, out, err = user_shell.run("engines", "update", "--wheel", str(wheel))
        assert (code, out) == (2, "") and why in err and "Traceback" not in err, err
    assert option_files(user_shell.folder) == []

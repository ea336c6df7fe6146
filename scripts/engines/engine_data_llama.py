"""llama-server's options, from the help that the parser compiled into the installed xllamacpp wheel prints."""

import hashlib
import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from sparkwright.engines.launchers import script
from sparkwright.engines.wheels.llama import parse_help


def llama_options() -> tuple[str, str, str, dict[str, dict[str, Any]], list[str]]:
    """(version, wheel name, sha256 of the compiled module, options, environment variables)."""
    found = importlib.metadata.distribution("xllamacpp")
    module = next(Path(str(f.locate())) for f in found.files or [] if str(f).endswith(".so"))
    wheel = next((line for line in (found.read_text("WHEEL") or "").splitlines() if line.startswith("Tag:")), "Tag: ")
    name = f"xllamacpp-{found.version}-{wheel.removeprefix('Tag: ')}.whl"
    words = [sys.executable, "-c", script("engine_options.py").text, "llama-cpp"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    options = parse_help(json.loads(done.stdout)["help"])
    env = sorted({str(row["env"]) for row in options.values() if "env" in row})
    return found.version, name, hashlib.sha256(module.read_bytes()).hexdigest(), options, env

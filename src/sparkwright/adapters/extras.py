"""The command that installs an optional part of this very installation."""

import importlib.metadata
import importlib.util
import json
import shlex
import sys
from contextlib import suppress
from urllib.parse import unquote, urlsplit


def install_command(extra: str) -> str:
    """A command that works when pasted: the name is on no package index, so it names where this one came from."""
    where = f".[{extra}]"
    with suppress(importlib.metadata.PackageNotFoundError, ValueError, KeyError, TypeError):
        text = importlib.metadata.distribution("sparkwright").read_text("direct_url.json") or ""
        source = json.loads(text)
        parts = urlsplit(source["url"])
        folder = unquote(parts.path) if parts.scheme == "file" and "dir_info" in source else ""
        where = f"{folder}[{extra}]" if folder else f"sparkwright[{extra}] @ {source['url']}"
    python = shlex.quote(sys.executable)
    pip = f"{python} -m pip install" if importlib.util.find_spec("pip") else f"uv pip install --python {python}"
    return f"{pip} {shlex.quote(where)}"

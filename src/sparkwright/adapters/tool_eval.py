"""tool-eval-bench as a child process: its progress line by line, its result file within bounds.

It writes a database and reports where it runs: that is a folder that is removed at the end. The key is in its
environment, not in argv.
"""

import importlib.util
import os
import shutil
import sys
from asyncio import IncompleteReadError, LimitOverrunError
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from sparkwright.adapters import process
from sparkwright.adapters.extras import install_command
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NotReady, UsageError

_MOST = 64 << 20  # bytes of its result; all 69 scenarios of version 3.0.0 make 0.2 MB
_PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH", "SSL_CERT_FILE", "NO_PROXY", "no_proxy")
_PROGRAM, _MODULE = "tool-eval-bench", "tool_eval_bench"


@dataclass(slots=True)
class ToolEvalProcess:
    """events: of its progress, as they come. result: its file, b'' where it wrote none; read once they have ended."""

    events: AsyncIterator[dict[str, Any]]
    folder: Path
    trouble: list[str]

    def result(self) -> bytes:
        """Raises NotReady with what it complained about."""
        path = self.folder / "result.json"
        if path.is_file() and path.stat().st_size <= _MOST:
            return path.read_bytes()
        why = (
            "its result is larger than 64 MiB" if path.is_file() else "; ".join(self.trouble[-3:]) or "no reason given"
        )
        raise NotReady(f"{_PROGRAM} gave no result: {why[:500]}", "sparkwright eval probes URL shows what answers")


def program() -> tuple[str, ...]:
    """The command that calls it. Raises UsageError if it is not installed."""
    if importlib.util.find_spec(_MODULE):
        return sys.executable, "-m", _MODULE
    if found := shutil.which(_PROGRAM):
        return (found,)
    raise UsageError(f"{_PROGRAM} is not installed", install_command("evals"))


@asynccontextmanager
async def running(argv: Sequence[str], key: Secret | None) -> AsyncIterator[ToolEvalProcess]:
    """Ended for certain when the context is left."""
    env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    env |= {"TOOL_EVAL_API_KEY": key.reveal()} if key else {}
    with TemporaryDirectory(prefix="sparkwright-eval-") as name:
        words = (*program(), *argv, "--json-file", "result.json", "--output-dir", "reports", "--no-live")
        child = await process.start(("env", "-C", name, *words), env=env)
        try:
            trouble: list[str] = []
            yield ToolEvalProcess(_events(child, trouble), Path(name), trouble)
        finally:
            await process.end_process(child, 0.0)


async def _events(child: Process, trouble: list[str]) -> AsyncIterator[dict[str, Any]]:
    """JSON lines of stderr; other lines go into trouble. A line over the bound ends them."""
    assert child.stderr
    while True:
        try:
            line = await child.stderr.readuntil(b"\n")
        except IncompleteReadError as error:
            line = error.partial
        except LimitOverrunError:
            return
        if not line:
            await child.wait()
            return
        try:
            event = orjson.loads(line)
        except orjson.JSONDecodeError:
            trouble.append(line.decode("utf-8", "replace").strip()[:300])
            del trouble[:-10]
            continue
        if isinstance(event, dict):
            if event.get("event") in ("error", "run_failed"):
                trouble.append(str(event.get("message", event))[:300])
            yield event

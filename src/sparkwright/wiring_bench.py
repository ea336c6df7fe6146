"""Builds what measuring needs. Apart from `wiring`, so that other commands need not load it."""

import os
import secrets
import select
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from sparkwright.adapters import bench_machine, tokenizers
from sparkwright.adapters.bench_http import HttpAsker, signed
from sparkwright.adapters.clock import SystemClock
from sparkwright.adapters.keyring import FolderKeyring
from sparkwright.adapters.load.client import ProcessClient
from sparkwright.adapters.sqlite.runs import RUNS, SqliteRuns
from sparkwright.app.bench.target import Target
from sparkwright.app.bench.texts import replayed_paths
from sparkwright.app.bench.tools import Bench, Machine
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import RecipeError, UsageError
from sparkwright.domain.probed import Probed
from sparkwright.domain.workload import Workload
from sparkwright.loadgen import profiles
from sparkwright.ports_bench import Asker, Tokenizer
from sparkwright.recipes.workload_file import load_workload

KEY_VARIABLES = ("SPARKWRIGHT_API_KEY", "OPENAI_API_KEY")
_STATE = Path(".local/state/sparkwright")
_OWN = Path(".config/sparkwright/workloads")
_KEY_BYTES = 8192


def run_store() -> SqliteRuns:
    """The runs that this machine keeps. To be closed with `aclose`."""
    return SqliteRuns(Path.home() / _STATE / RUNS)


@asynccontextmanager
async def bench(tokenizer: Path | None) -> AsyncIterator[Bench]:
    """tokenizer: a tokenizer.json, or a folder with one, in place of the server's own. Raises UsageError."""
    if not hasattr(select, "epoll"):
        raise UsageError(f"bench measures on Linux only (epoll); this is {sys.platform}", "run it on the head node")
    runs = run_store()

    async def counting(asker: Asker, engine: Target, probed: Probed) -> Tokenizer:
        return await tokenizers.tokenizer(tokenizers.Served(asker, engine.root, probed.model, engine.key), tokenizer)

    nonce = secrets.token_hex(8)
    machine = Machine(bench_machine.client(), bench_machine.host(), bench_machine.clock(), nonce)
    try:
        yield Bench(HttpAsker(), ProcessClient(), runs, SystemClock(), machine, counting)
    finally:
        await runs.aclose()


def trusting(made: Bench, cluster: str) -> Bench:
    """It knows the authority of the cluster's front doors, too, where `up` was called on this machine."""
    kept = _authority(cluster)
    return replace(made, asker=HttpAsker(kept), client=ProcessClient(authority=kept)) if kept else made


async def vouched(url: str, cluster: str) -> bool:
    """Whether an https server proves by its certificate that it belongs to the cluster."""
    kept = _authority(cluster)
    return bool(kept) and await signed(url, kept)


def _authority(cluster: str) -> str:
    path = Path.home() / _STATE / "keys" / cluster / "ca.crt"
    return str(path) if path.is_file() else ""


def open_workload(wanted: str) -> Workload:
    """A shipped one by its name, the user's own by name, or any by its path. Raises RecipeError."""
    own = Path.home() / _OWN / f"{wanted}.yaml"
    is_path = "/" in wanted or wanted.endswith((".yaml", ".yml"))
    if not is_path and not own.exists():
        if wanted not in profiles.names():
            raise _unknown(wanted)
        return load_workload(profiles.text(wanted), f"{wanted}.yaml")
    path = Path(wanted).expanduser() if is_path else own
    try:
        return load_workload(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def replayed(workload: Workload) -> Mapping[str, str]:
    """Path -> text of the files that it replays, but for those that ship. Raises UsageError."""
    return {path: _replayed(Path(path).expanduser()) for path in replayed_paths(workload)}


def _replayed(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}, to be replayed: {getattr(error, 'strerror', None) or 'no text'}") from None


def _unknown(wanted: str) -> RecipeError:
    near = get_close_matches(wanted, profiles.names(), n=1)
    hint = f"did you mean `{near[0]}`? " if near else ""
    return RecipeError(
        f"no profile {wanted!r}; there are: {', '.join(profiles.names())}",
        f"{hint}Your own is named by its path: --profile ./mine.yaml",
    )


def keys(file: Path | None) -> tuple[Secret | None, ...]:
    """Keys to try, in this order. A key for somebody else's service is shown only to a server that wants one.

    Raises UsageError for a file without a key.
    """
    if file is None:
        own, general = (os.environ.get(name, "").strip() for name in KEY_VARIABLES)
        first = Secret(own) if own else None
        return (first, Secret(general)) if general else (first,)
    try:
        with file.open("rb") as opened:
            words = opened.read(_KEY_BYTES).decode().split()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--key-file {file}: {getattr(error, 'strerror', None) or 'no text'}") from None
    if len(words) != 1:
        raise UsageError(f"--key-file {file}: observed {len(words)} words; wanted: one key and nothing else")
    return (Secret(words[0]),)


def door_keys(cluster: str) -> tuple[Secret, ...]:
    """Those to the front doors of a cluster that were made from this machine."""
    return tuple(key for _, key in FolderKeyring(Path.home() / _STATE / "keys").kept(cluster))

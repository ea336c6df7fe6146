"""The user's own `git`, for reading other people's repositories: nothing is checked out, so nothing in them runs.

Credentials are the user's: helpers, ssh keys and agents work as on any other call of git.
"""

import os
import resource
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from sparkwright.domain.errors import UsageError
from sparkwright.domain.values import dataclass

MAX_PACK = 256_000_000  # bytes of one file that git may write: registries of recipes have some 100 KB
MAX_LISTING = 16_000_000
FETCH_LIMIT = 300.0
_LIMIT = 60.0
_PROTOCOLS = "file:git:http:https:ssh"
# No hooks, no submodules, no programs that a repository or a template of the user's may name.
_SAFE = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false",
    "-c", "fetch.recurseSubmodules=false", "-c", "protocol.ext.allow=never", "-c", "fetch.fsckObjects=true",
    "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "fetch.writeCommitGraph=false",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One file of a commit. mode: `120000` is a symbolic link, `160000` a submodule. size: bytes."""

    mode: str
    blob: str
    size: int
    path: str


class Git:
    """One bare repository of ours, which only ever fetches."""

    def __init__(self, folder: Path, interactive: bool) -> None:
        """interactive: whether git may ask for a password on the terminal."""
        self._folder = folder
        self._interactive = interactive

    def create(self) -> None:
        """Raises UsageError where git is not installed."""
        self._run(("init", "--quiet", "--bare", "--template=", str(self._folder)), bare=False)

    def fetch(self, url: str) -> str:
        """The commit of the remote's HEAD. Raises UsageError."""
        self._run(("fetch", "--quiet", "--no-tags", "--", url, "+HEAD:refs/sparkwright/head"), FETCH_LIMIT)
        return self._run(("rev-parse", "--verify", "refs/sparkwright/head^{commit}")).decode().strip()

    def is_ancestor(self, old: str, new: str) -> bool:
        """Return whether the history of `new` contains `old`."""
        try:
            self._run(("merge-base", "--is-ancestor", old, new))
        except UsageError:
            return False
        return True

    def listing(self, commit: str) -> Iterator[TreeEntry]:
        """Every file of a commit. Raises UsageError."""
        text = self._run(("ls-tree", "-r", "-l", "-z", "--full-tree", commit))
        for line in text.split(b"\0"):
            head, _, path = line.partition(b"\t")
            parts = head.split()
            if len(parts) == 4:
                size = int(parts[3]) if parts[3].isdigit() else 0
                yield TreeEntry(parts[0].decode(), parts[2].decode(), size, path.decode("utf-8", "replace"))

    def content(self, blob: str, most: int) -> bytes:
        """A file's bytes, `most` of them at most. Raises UsageError."""
        return self._run(("cat-file", "blob", blob), most=most)

    def contents(self, blobs: Sequence[str], most: int) -> list[bytes]:
        """Bytes of several files, `most` in all. Raises UsageError."""
        asked = "".join(f"{blob}\n" for blob in blobs).encode()
        text, found = self._run(("cat-file", "--batch"), most=most + 100 * len(blobs), stdin=asked), []
        at = 0
        for blob in blobs:
            end = text.index(b"\n", at)
            words = text[at:end].split()
            if len(words) != 3 or words[1] != b"blob":
                raise UsageError(f"git has no file {blob}: the copy is damaged; remove the source and add it again")
            size = int(words[2])
            found.append(text[end + 1 : end + 1 + size])
            at = end + size + 2
        return found

    def _run(
        self,
        words: Sequence[str],
        limit: float = _LIMIT,
        most: int = MAX_LISTING,
        stdin: bytes = b"",
        bare: bool = True,
    ) -> bytes:
        """Its stdout. Raises UsageError with git's own words."""
        argv = ("git", *_SAFE, *(("--git-dir", str(self._folder)) if bare else ()), *words)
        try:
            process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self._environment(),
                start_new_session=not self._interactive, preexec_fn=_bounded, cwd="/",
            )  # fmt: skip
        except FileNotFoundError:
            raise UsageError("git is not installed on this machine", "sudo apt-get install git") from None
        try:
            out, errors = process.communicate(stdin, limit)
        except subprocess.TimeoutExpired:
            _end(process, not self._interactive)
            raise UsageError(f"git {words[0]} did not end within {limit:g} s", "is the address reachable?") from None
        except BaseException:
            _end(process, not self._interactive)
            raise
        if process.returncode == -signal.SIGXFSZ or any(word in errors for word in _LARGE):
            raise UsageError(f"the repository is larger than {MAX_PACK // 10**6} MB: that is no registry of recipes")
        if process.returncode:
            raise UsageError(f"git {words[0]}: {_said(errors) or f'exit status {process.returncode}'}")
        if len(out) > most:
            raise UsageError(f"git {words[0]} printed more than {most // 1000:,} kB: that is no registry of recipes")
        return out

    def _environment(self) -> dict[str, str]:
        """The user's own, less what would redirect git to another repository."""
        kept = {name: value for name, value in os.environ.items() if name not in ("GIT_DIR", "GIT_WORK_TREE")}
        kept |= {"GIT_ALLOW_PROTOCOL": _PROTOCOLS, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
        if not self._interactive:
            kept |= {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": kept.get("GIT_ASKPASS", "")}
            kept["GIT_SSH_COMMAND"] = kept.get("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")
        return kept


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_PACK, MAX_PACK))


def _end(process: "subprocess.Popen[bytes]", group: bool) -> None:
    try:
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:
        pass
    process.wait()


_LARGE = (b"File too large", b"signal 25")  # of git, and of a program that it started
_ADVICE = ("hint:", "Please make sure", "and the repository exists")


def _said(errors: bytes) -> str:
    """The first lines in which git says what was wrong, as one, without terminal sequences."""
    text = errors[:4000].decode("utf-8", "replace")
    lines = ["".join(c for c in line if c.isprintable()).strip() for line in text.splitlines()]
    told = [line for line in lines if line and not line.startswith(_ADVICE)]
    return "; ".join(line.removeprefix("fatal: ").removeprefix("error: ") for line in told[:2])[:400]

"""A process that has imported the command and forks a child for each call, which saves half a second of CPU.

Each call still runs in a process of its own, with its own environment, folder, streams, signals and exit code, so no
state passes from one call to the next. `SPARKWRIGHT_TESTS_COLD=1` starts a new interpreter for each call instead.
"""

import atexit
import contextlib
import gc
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

Started = tuple[int, socket.socket]  # process id, and where its status will be readable
LIMIT = 1 << 20  # bytes of a request: arguments and environment
STREAMS = 3


class WarmCommand:
    """The client's side: one server for each test process, which ends with it."""

    def __init__(self) -> None:
        self._owner = 0
        self._control: socket.socket
        self._server: subprocess.Popen[bytes]

    def _connect(self) -> socket.socket:
        """Start the server in the process that asks: a forked test worker has namespaces of its own."""
        if self._owner != os.getpid():
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            keep = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
            words = [sys.executable, __file__, str(theirs.fileno())]
            with theirs:
                self._server = subprocess.Popen(words, env=keep, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
            self._owner = os.getpid()
            atexit.register(self.end)
        return self._control

    def end(self) -> None:
        """End the server that this process started, if any."""
        if self._owner == os.getpid():
            self._owner = 0
            self._control.close()
            self._server.wait(10)

    def start(self, words: Sequence[str], environ: Mapping[str, str], folder: Path, streams: Sequence[int]) -> Started:
        """Run the command with these three file descriptors as stdin, stdout and stderr."""
        ours, theirs = socket.socketpair()
        request = json.dumps({"words": list(words), "environ": dict(environ), "folder": str(folder)}).encode()
        with theirs:
            socket.send_fds(self._connect(), [request], [*streams, theirs.fileno()])
        return int.from_bytes(received(ours, 4), "big"), ours


def received(end: socket.socket, size: int) -> bytes:
    """Read `size` bytes; raise EOFError if the process died without a status."""
    found = b""
    while len(found) < size:
        if not (part := end.recv(size - len(found))):
            raise EOFError("the warm command ended without a status")
        found += part
    return found


def exit_code(started: Started, seconds: float) -> int:
    """Wait as `Popen.wait` does: negative for a signal. After `seconds`, or at Ctrl-C, the process is killed."""
    pid, end = started
    with end:
        end.settimeout(seconds)
        try:
            return os.waitstatus_to_exitcode(int.from_bytes(received(end, 4), "big"))
        except (TimeoutError, KeyboardInterrupt):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            raise


def serve(control: socket.socket) -> None:
    import_command()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers of a call leave no zombies
    while True:
        request, handles, _, _ = socket.recv_fds(control, LIMIT, STREAMS + 1)
        if not request:
            return
        if os.fork() == 0:
            control.close()
            keep_call(json.loads(request), handles)
        for handle in handles:
            os.close(handle)


def keep_call(request: dict[str, object], handles: Sequence[int]) -> None:
    """Report the process id at once and the status at the end; never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, report = handles
    pid = os.fork()
    if pid == 0:
        os.close(report)
        run_call(request, streams)
    for stream in streams:
        os.close(stream)
    with socket.socket(fileno=report) as end, contextlib.suppress(OSError):
        end.sendall(pid.to_bytes(4, "big"))
        status = os.waitpid(pid, 0)[1]
        end.sendall(status.to_bytes(4, "big"))
    os._exit(0)


def run_call(request: dict[str, object], streams: Sequence[int]) -> None:
    """Runs a call as a new interpreter would with `-m sparkwright`; never returns."""
    from sparkwright.cli.main import run_command_line

    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environ"])  # type: ignore[call-overload]
    os.chdir(str(request["folder"]))
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace", buffering=1)  # noqa: SIM115
    main = importlib.util.find_spec("sparkwright.__main__")
    sys.argv = [str(main and main.origin), *request["words"]]  # type: ignore[misc]
    gc.unfreeze()
    end_process(run_command_line)


def end_process(entry: object) -> None:
    """Exit as an interpreter does at its end: exit functions run, streams are flushed, then the status."""
    import threading
    import traceback

    code = 1
    try:
        entry()  # type: ignore[operator]
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def import_command() -> None:
    """All verbs; what a verb imports only when it runs is imported in its own process."""
    from sparkwright.cli.main import VERBS

    for module, _, _ in VERBS.values():
        importlib.import_module(f"sparkwright.cli.{module}")


if __name__ == "__main__":
    sys.path.pop(0)  # this folder: a `python -m sparkwright` does not see it
    with contextlib.suppress(KeyboardInterrupt):
        serve(socket.socket(fileno=int(sys.argv[1])))
    os._exit(0)

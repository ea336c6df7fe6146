"""The passages of a log that are no messages: known by their form, whatever program wrote them."""

import pytest

from sparkwright.app.diagnose.examine import examine
from sparkwright.causes.passages import passages

HELP = """usage: tool [-h] [--retry N] FILE
  -h, --help            show this
  --retry N             how often a failed request is tried again; an error
                        that cannot be cured is not retried: connection refused
  --shm-size BYTES
          fails with "No space left on device" if it is too small
"""
CODE = """import socket
def opened(port):
    if port < 1024:
        raise PermissionError("permission denied: cannot bind to a port below 1024")
    return socket.create_server(("", port))
"""
ROWS = """  restart    starts failed units again
  kill       sends a signal to what cannot be stopped
  reset      forgets units that failed
"""
TESTS = """test_connection_refused ... ok
tests/test_disk.py::test_no_space_left_on_device_is_an_error PASSED
--- PASS: TestErrorIsReturned (0.00s)
ok 3 - fails closed with an error
# Subtest: connection refused is an error
# fail 0
"""
BELOW = """2026-11-29 10:00:00 INFO  reloaded 3 rules
    rule 2: requests that failed with an error, connection refused
"""
NONE = """compiling a.c
a.c: error handling is slow, cannot inline it: No such file or directory
2 warnings
0 errors
"""
IGNORED = """Error in sitecustomize; set PYTHONVERBOSE for traceback:
ModuleNotFoundError: No module named 'wrapt'
(EngineCore pid=7) Exception ignored in: <function Pool.__del__ at 0x7f00>
(EngineCore pid=7) Traceback (most recent call last):
(EngineCore pid=7)   File "/usr/lib/pool.py", line 3, in __del__
(EngineCore pid=7)     self.socket.close()
(EngineCore pid=7) ConnectionResetError: [Errno 104] Connection reset by peer
  lib/unraisable.py:67: PytestUnraisableExceptionWarning: Exception ignored while calling deallocator <function f>

  Traceback (most recent call last):
    File "/usr/lib/subprocess.py", line 126, in __del__
  RuntimeError: Event loop is closed
Creating device (/gpu:0) -> (device: 0, name: GeForce GTX 1060 6GB, pci bus id: 0000:06:00.0)
Exception ignored in: 'h5py._errors.set_error_handler'
RuntimeError: Failed to retrieve old handler
"""
ENDED = {
    "help": "error: unable to open FILE: No such file or directory\n" + HELP,
    "code": CODE + "PermissionError: permission denied: cannot bind to a port below 1024\n",
    "columns": ROWS + "error: unable to stop main: No such file or directory\n",
    "tests": TESTS + "error: cannot open /data/7: No such file or directory\n",
    "below": f"{BELOW}2026-11-29 10:00:01 ERROR stopped: cannot open /data/7\n"
    "app: Main process exited, code=exited, status=1/FAILURE\n",
    "ignored": IGNORED + "ModuleNotFoundError: No module named 'wrapt'\n",
    "none": NONE + "make: *** [Makefile:7: all] Error 2\n",
}


@pytest.mark.parametrize("text", [HELP, CODE, ROWS, TESTS, BELOW, IGNORED, NONE], ids=ENDED)
def test_a_passage_that_is_no_message_fails_nowhere(text: str) -> None:
    """Guards help, source code, columns, tests that passed, parts of quiet records, ignored exceptions, counts."""
    found = examine([("log", [text.encode()])], 2026, {})
    assert not found.failure
    assert not [cause.key for cause in found.causes if cause.confidence >= 0.5]


@pytest.mark.parametrize("kind", ENDED)
def test_a_failure_beside_such_a_passage_is_still_one(kind: str) -> None:
    """Guards the message of a program that shows its help, its source or its tables when it fails."""
    assert examine([("log", [ENDED[kind].encode()])], 2026, {}).failure


def test_lines_in_a_row_alone_are_no_passage() -> None:
    """Guards single lines with the syntax of code or columns, which may be messages."""
    lines = [(1, "raise ValueError('too small')"), (2, "nothing was written"), (3, "  error    cannot open the file")]
    assert passages(lines) == frozenset()


def test_an_exception_that_ends_with_passed_is_no_passed_test() -> None:
    """Guards transformers' complaint about a chat template, which no argument gave."""
    text = "ValueError: tokenizer.chat_template is not set and no template argument was passed"
    assert not passages([(1, text)])
    assert passages([(1, "tests/test_disk.py::test_no_space_left_on_device_is_an_error passed")])

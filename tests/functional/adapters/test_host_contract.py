"""The promises of every Host; the same tests on the fake, this machine and a node behind a real sshd."""

import asyncio
import os
import resource
import stat
import time
from contextlib import aclosing, suppress
from pathlib import Path

import pytest

from fakes.host import FakeHost
from fakes.nodes import make_node
from fakes.processes import started, wait_until_gone
from patience import wait_until
from sparkwright.adapters.hosts import local_host
from sparkwright.adapters.node_host import NodeHost
from sparkwright.domain.command import Command, shell_command
from sparkwright.domain.errors import CommandFailed, Unreachable

Any = NodeHost | FakeHost
ODD = (
    "two words",
    "it's",
    'a "quote"',
    "line\nbreak",
    "tab\t",
    "$HOME `id` $(id)",
    "back\\slash\\n",
    "é ü 漢 🦙",
    "",
    "!x",
    "-n",
    "*",
    "a;b&c|d>e",
)


@pytest.fixture
def unique_seconds() -> str:
    """A number of seconds that no other process sleeps."""
    return f"61.{time.monotonic_ns()}"


async def test_argv_arrives_unchanged(any_host: Any) -> None:
    """A program gets exactly the words it was given, however odd."""
    done = await any_host.run(Command(("printf", "<%s>", *ODD)))
    assert done.stdout == "".join(f"<{word}>" for word in ODD)


async def test_env_arrives_unchanged(any_host: Any) -> None:
    """An environment value with quotes, newlines or nothing in it reaches the program."""
    env = {f"ODD_{number}": word for number, word in enumerate(ODD)}
    names = " ".join(f'"<$ODD_{number}>"' for number in range(len(ODD)))
    done = await any_host.run(Command(("sh", "-c", f"printf %s {names}"), env=env))
    assert done.stdout == "".join(f"<{word}>" for word in ODD)


@pytest.mark.parametrize("code", [0, 1, 3, 124, 126, 137, 255])
async def test_exit_codes_are_the_programs_own(any_host: Any, code: int) -> None:
    """Every exit code comes through; 255 is a program's right and not a lost connection."""
    done = await any_host.run(shell_command(f"echo out; echo err >&2; exit {code}"))
    assert (done.exit_code, done.stdout, done.stderr) == (code, "out\n", "err\n")


async def test_missing_program_is_127(any_host: Any) -> None:
    """A program that is not there is an exit code, not an exception."""
    done = await any_host.run(Command(("no-such-program-here", "x")))
    assert done.exit_code == 127 and "no-such-program-here" in done.stderr


@pytest.mark.parametrize(
    "content", [b"", b"one\n", b"no end", bytes(range(1, 128)) * 3], ids=["", "line", "cut", "odd"]
)
async def test_stdin_arrives_and_ends(any_host: Any, content: bytes) -> None:
    """A program that reads to the end of its stdin gets all of it, and the end."""
    assert (await any_host.run(Command(("cat",), stdin=content))).stdout == content.decode()


async def test_run_all_answers_in_order(any_host: Any) -> None:
    """Results belong to their commands, with stdout, stderr and exit codes apart, also without any output."""
    commands = [shell_command('echo "out $1"; echo "err $1" >&2; exit $1', str(n)) for n in range(12)]
    commands += [
        Command(("true",)),
        Command(("nope-nope",)),
        Command(("cat",), stdin=b"in\n"),
        shell_command("printf x"),
    ]
    results = await any_host.run_all(commands)
    assert [(r.exit_code, r.stdout, r.stderr) for r in results[:12]] == [
        (n, f"out {n}\n", f"err {n}\n") for n in range(12)
    ]
    assert [(r.exit_code, r.stdout) for r in results[12:]] == [(0, ""), (127, ""), (0, "in\n"), (0, "x")]
    assert await any_host.run_all([]) == ()


async def test_stream_gives_lines_of_both_outputs(any_host: Any) -> None:
    """Lines come without their ends, and the stream ends with the command."""
    lines = [line async for line in any_host.stream(shell_command("echo a; echo; echo b"))]
    assert lines == ["a", "", "b"]


async def test_timeout_is_124_and_kills_the_tree(node_host: NodeHost, unique_seconds: str) -> None:
    """A command is gone at its timeout, with its children, on the node, and the call reports 124."""
    done = await node_host.run(Command(("sh", "-c", 'echo begun; sleep "$1"; :', "x", unique_seconds), timeout=1.0))
    assert (done.exit_code, done.stdout) == (124, "begun\n")
    assert await wait_until_gone(unique_seconds)


async def test_timeouts_in_run_all_are_each_commands_own(node_host: NodeHost, unique_seconds: str) -> None:
    """One command that hangs costs its own timeout and not the others' answers."""
    late, good = await node_host.run_all(
        [Command(("sleep", unique_seconds), timeout=0.2), shell_command("sleep 0.3; echo good")]
    )
    assert (late.exit_code, good.exit_code, good.stdout) == (124, 0, "good\n")
    assert await wait_until_gone(unique_seconds)


async def test_run_all_is_parallel_in_one_round_trip(node_host: NodeHost, unique_seconds: str) -> None:
    """Six commands each wait until all six have begun: one after the other they would wait for ever."""
    folder = f"/tmp/sparkwright-together-{unique_seconds}"
    meet = 'mkdir -p "$1" && touch "$1/$2" && until [ "$(ls "$1" | wc -l)" = 6 ]; do sleep 0.02; done'
    try:
        assert all(done.ok for done in await node_host.run_all([shell_command(meet, folder, str(n)) for n in range(6)]))
    finally:
        await node_host.run(Command(("rm", "-r", folder)))


async def test_run_all_leaves_no_files(node_host: NodeHost) -> None:
    """The folder that held the answers is gone, and another user could not have read it."""
    # Its own folder, as others' come and go meanwhile. The whole name would end the answer: it is the mark in it
    script = 'f=$(readlink /proc/$$/fd/1) && f=${f%/*} && stat -c %a "$f" && echo "${f#/dev/shm/sparkwright-}"'
    (done,) = await node_host.run_all([shell_command(script)])
    mode, name = done.stdout.split()
    folder = Path(f"/dev/shm/sparkwright-{name}")
    assert mode == "700"
    await asyncio.to_thread(wait_until, lambda: not folder.exists(), f"the end of {folder}")


async def test_large_output_and_input(node_host: NodeHost) -> None:
    """Five megabytes come whole in both directions, alone and next to others."""
    five = b"0123456789abcde\n" * 312_500
    assert (await node_host.run(Command(("cat",), stdin=five))).stdout == five.decode()
    many = await node_host.run_all([shell_command("yes | head -c 5000000"), shell_command("yes | head -c 5000000 >&2")])
    assert (len(many[0].stdout), len(many[1].stderr)) == (5_000_000, 5_000_000)


async def test_large_argv(node_host: NodeHost) -> None:
    """A command line longer than one argument may be is sent in another way."""
    words = ["w" * 50_000] * 4
    assert len((await node_host.run(Command(("printf", "%s", *words)))).stdout) == 200_000


async def test_bytes_that_are_no_text_are_replaced(node_host: NodeHost) -> None:
    """Odd bytes in output do not raise: facts must survive a broken file."""
    done = await node_host.run(shell_command(r"printf 'a\377b'"))
    assert done.stdout == "a\ufffdb"


async def test_program_that_ignores_its_stdin(node_host: NodeHost) -> None:
    """Input that nobody reads does not hang the call."""
    assert (await node_host.run(Command(("echo", "done"), stdin=b"x" * 1_000_000))).stdout == "done\n"


async def test_daemon_that_keeps_stdout_does_not_hold_the_call(node_host: NodeHost, unique_seconds: str) -> None:
    """A background process with our pipe open must not look like a command that does not end."""
    done = await node_host.run(shell_command('sleep "$1" & echo $!', unique_seconds))
    assert done.ok
    os.kill(int(done.stdout), 9)


async def test_node_environment(tmp_path: Path, node_host: NodeHost) -> None:
    """Commands start in the home folder, in a UTF-8 locale, with the sbin folders at the end of PATH."""
    done = await node_host.run(shell_command('test "$PWD" -ef "$HOME" && echo home; echo $LC_ALL; echo $PATH'))
    home, locale, path = done.stdout.split()
    assert (home, locale) == ("home", "C.UTF-8")
    assert path.endswith(":/usr/sbin:/sbin")


async def test_node_env_comes_first(tmp_path: Path) -> None:
    """Node.env reaches every command, and its HOME is where `~` and the command are."""
    made = local_host(make_node(tmp_path, "local", env=(("HOME", str(tmp_path)), ("SPARKWRIGHT_SYSROOT", "/a b"))))
    await made.put(b"x", "~/deep/file")
    (done,) = await made.run_all([shell_command('pwd; echo "$SPARKWRIGHT_SYSROOT"; cat ~/deep/file')])
    assert done.stdout == f"{tmp_path}\n/a b\nx"


async def test_stream_arrives_as_it_is_printed(node_host: NodeHost) -> None:
    """A line is there when it is printed, and a progress bar's states, which end in carriage returns, are lines."""
    script = r"printf '\r 10%%'; printf '\r 20%%\r\n'; echo late >&2; read -r go; echo never"
    async with aclosing(node_host.stream(shell_command(script + "; sleep 61"))) as lines:
        heard = [await anext(lines) for _ in range(3)]
    assert heard == [" 10%", " 20%", "late"]


async def test_stream_takes_stdin(node_host: NodeHost) -> None:
    """A streamed command gets its stdin, as a run one does."""
    assert [line async for line in node_host.stream(Command(("cat",), stdin=b"a\nb"))] == ["a", "b"]


@pytest.mark.parametrize("stubborn", ["", "trap '' TERM HUP INT; "], ids=["polite", "stubborn"])
async def test_closed_stream_leaves_nothing_running(node_host: NodeHost, unique_seconds: str, stubborn: str) -> None:
    """Anyone who stops listening ends the command and its children on the node, also when they ignore SIGTERM."""
    script = f'{stubborn}(sleep "$1"; :) & echo up; sleep "$1"; sleep "$1"'
    async with aclosing(node_host.stream(shell_command(script, unique_seconds))) as lines:
        assert await anext(lines) == "up"
        await started(unique_seconds)
    assert await wait_until_gone(unique_seconds)


@pytest.mark.parametrize("stdin", [None, b"some input"], ids=["no stdin", "stdin"])
async def test_cancelled_run_leaves_nothing_running(
    node_host: NodeHost, unique_seconds: str, stdin: bytes | None
) -> None:
    """Ctrl-C during a long command ends it on the node, too, and soon."""
    task = asyncio.create_task(node_host.run(Command(("sh", "-c", 'sleep "$1"; :', "x", unique_seconds), stdin=stdin)))
    await started(unique_seconds)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert await wait_until_gone(unique_seconds)


@pytest.mark.parametrize("moment", [0.0, 0.001, 0.002, 0.004, 0.008])
async def test_cancelled_at_once_it_neither_hangs_nor_leaves_anything(
    node_host: NodeHost, unique_seconds: str, moment: float
) -> None:
    """Ctrl-C while a call is being started: the start is ended too, and asyncio does not wait for it for ever."""
    task = asyncio.create_task(node_host.run(shell_command(f"sleep 30; : {unique_seconds}")))
    await asyncio.sleep(moment)
    task.cancel()
    await asyncio.wait([task], timeout=60)
    assert task.cancelled()
    assert await wait_until_gone(unique_seconds)


async def test_cancelled_run_all_leaves_nothing_running(node_host: NodeHost, unique_seconds: str) -> None:
    """The same for many commands at once."""
    task = asyncio.create_task(
        node_host.run_all([Command(("sleep", unique_seconds)), Command(("sleep", unique_seconds + "1"))])
    )
    await started(unique_seconds + "1")
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert await wait_until_gone(unique_seconds)


async def test_commands_can_be_interrupted(node_host: NodeHost) -> None:
    """A program is not deaf to SIGINT, as background jobs of a shell are: engines end by it."""
    done = await node_host.run(shell_command("kill -INT $$; echo deaf"))
    assert "deaf" not in done.stdout


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
async def test_put_writes_with_its_mode(node_host: NodeHost, tmp_path: Path, mode: int) -> None:
    """The file has the content and the mode, parents are made, and no temporary file stays."""
    path = tmp_path / "a b" / "it's" / "file"
    await node_host.put(b"one\0two\xff", str(path), mode)
    assert path.read_bytes() == b"one\0two\xff" and stat.S_IMODE(path.stat().st_mode) == mode
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


async def test_put_replaces_at_once(node_host: NodeHost, tmp_path: Path) -> None:
    """A reader sees the old file or the new one: it is another file, renamed over the old one."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        await node_host.put(b"", str(path))
        assert (reader.read(), path.read_bytes()) == (b"old", b"")


async def test_put_that_cannot_work_reports_why(node_host: NodeHost, tmp_path: Path) -> None:
    """A path below a file is refused with the node's own text, and nothing is left."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(CommandFailed, match=r"spark-1: cannot write .*file/x") as raised:
        await node_host.put(b"x", str(tmp_path / "file" / "x"))
    assert "Not a directory" in str(raised.value) or "File exists" in str(raised.value)


async def test_changes_are_in_the_audit_log(node_host: NodeHost, tmp_path: Path) -> None:
    """A change of a node is in its log before it runs, on one line with time and who; a mere read is not."""
    log = tmp_path / "state" / "audit.log"
    seen = await node_host.run(Command(("cat", str(log)), changes="start it's\n rank 0"))
    await node_host.run_all([Command(("true",)), Command(("true",), changes="stop rank 0")])
    assert seen.stdout.endswith("Z ann@laptop start it's rank 0\n") and seen.stderr == ""
    lines = log.read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == ["ann@laptop start it's rank 0", "ann@laptop stop rank 0"]
    assert stat.S_IMODE(log.stat().st_mode) == 0o600 and len(lines[0].split()[0]) == len("2026-11-21T08:00:00Z")


async def test_a_log_that_cannot_be_written_stops_nothing(node_host: NodeHost, tmp_path: Path) -> None:
    """A full disk does not stop `down`; the complaint is in stderr."""
    (tmp_path / "state").write_text("not a folder")
    done = await node_host.run(Command(("echo", "done"), changes="stop"))
    assert (done.exit_code, done.stdout) == (0, "done\n") and "state" in done.stderr


async def test_tunnel_reaches_a_server(node_host: NodeHost) -> None:
    """The URL answers as the node's own port does, twice and for two callers at a time; then it is closed."""
    async with (
        web_server() as port,
        node_host.tunnel("127.0.0.1", port) as url,
        node_host.tunnel("127.0.0.1", port) as other,
    ):
        answers = await asyncio.gather(*(fetch(each) for each in (url, url, other)))
    assert answers == ["hello"] * 3


async def fetch(url: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    try:
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        return (await reader.read()).decode().rpartition("\n")[2]
    finally:
        writer.close()
        await writer.wait_closed()


class web_server:
    """A small HTTP server; `async with` gives its port."""

    async def __aenter__(self) -> int:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        await writer.drain()
        writer.close()


async def test_nothing_runs_twice(node_host: NodeHost, tmp_path: Path) -> None:
    """A command that changes something is never sent a second time."""
    await node_host.run(shell_command('echo x >>"$1"', str(tmp_path / "count"), changes="count"))
    assert (tmp_path / "count").read_text() == "x\n"


async def test_a_machine_that_can_start_nothing_more_says_so(tmp_path: Path) -> None:
    """Guards a supervisor at a limit of its user: a sentence about this machine, and no error of Python's."""
    host = local_host(make_node(tmp_path, "local"))
    await host.run(Command(("true",)))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 1, hard))
    held = []
    try:
        with suppress(OSError):
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        with pytest.raises(Unreachable, match="this machine cannot start a process to reach it: Too many open files"):
            await host.run(Command(("true",)))
        with pytest.raises(Unreachable, match="Too many open files"):
            async with aclosing(host.stream(Command(("true",)))) as lines:
                await anext(lines)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for one in held:
            os.close(one)
    assert (await host.run(Command(("true",)))).ok

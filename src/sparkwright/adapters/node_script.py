"""The form in which commands reach a node: a POSIX sh script around the caller's argv, and how its output is read back.

Every script prints a random mark before the command and, after it, the mark with the exit code. So the end of a
command and the loss of the connection differ by structure: ssh's own exit 255 comes without the closing mark,
a program's 255 with it. Noise from a login shell's start-up files lies before the first mark and is dropped.
"""

import base64
import secrets
import shlex
from collections.abc import Sequence

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.values import dataclass, field
from sparkwright.remote.host import PRELUDE, filled, script, script_texts

_sh = script_texts(__name__)

# Programs that nodes keep out of a non-login PATH (show_gids, ethtool); last, so that a node's own PATH wins.
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
# `timeout` sends KILL when TERM did not end the command in this many seconds.
KILL_AFTER = 2
_FOR_EVER = 365 * 86400
# `ps` and `systemctl status` on a node show what runs there, not its text: a script travels on stdin, and the command's
# own script in a variable, which is gone before the script begins. dd reads no byte more than it is asked to.
_FROM_STDIN = 'eval "$(dd bs={size} count=1 iflag=fullblock 2>/dev/null)"'
_FROM_VARIABLE = 'eval "unset SPARKWRIGHT_SCRIPT; ${SPARKWRIGHT_SCRIPT:?}"'
_SHOWN = 200  # characters of a script that may stand in a command line


@dataclass(frozen=True, slots=True)
class ScriptSettings:
    """Settings of every script on a node. env: exported first; state: folder of the audit log; who: for its lines."""

    env: tuple[tuple[str, str], ...] = ()
    state: str = "~/.local/state/sparkwright"
    who: str = ""


@dataclass(frozen=True, slots=True)
class NodeScript:
    """One exchange with a node. limit: seconds after which the node must have ended it.

    again: it only reads, so it may be sent again when the connection was lost before it began.
    """

    text: str
    mark: bytes
    limit: float
    stdin: bytes = b""
    agent: bool = False
    again: bool = False


@dataclass(slots=True)
class Output:
    """Bytes as they came from a node, marks included."""

    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    seconds: float = 0.0

    def begun(self, mark: bytes) -> bool:
        return mark in self.stdout

    def ended(self, mark: bytes) -> bool:
        return closed(self.stdout, mark)


def closed(data: bytearray, mark: bytes, start: int = 0) -> bool:
    """True if the closing mark and its exit code are complete; everything before `start` is known to lack it."""
    at = data.find(mark + b" ", max(0, start - len(mark) - 8))
    return at >= 0 and data.find(b"\n", at) >= 0


def run(setting: ScriptSettings, command: Command) -> NodeScript:
    """One command with stdout and stderr apart."""
    mark = _mark()
    text = _opening(setting, mark) + _note(setting, command) + _call(command, command.timeout)
    return NodeScript(text, mark, command.timeout, command.stdin or b"", command.forward_agent, not command.changes)


def stream(setting: ScriptSettings, command: Command) -> NodeScript:
    """One command without an end of its own, stderr joined to stdout."""
    mark = _mark()
    text = "exec 2>&1\n" + _opening(setting, mark) + _note(setting, command) + _call(command, _FOR_EVER)
    return NodeScript(text, mark, _FOR_EVER, command.stdin or b"", command.forward_agent)


def run_all(setting: ScriptSettings, commands: Sequence[Command]) -> NodeScript:
    """Commands side by side, their output kept in files until all have ended."""
    mark = _mark()
    notes = "".join(_note(setting, c) for c in commands)
    started = "".join(_start(number, c) for number, c in enumerate(commands))
    awaited = "".join(f'wait $p{n}; echo $? >"$t/{n}.c"\n' for n in range(len(commands)))
    files = " ".join(f'"$t/m" "$t/{n}.c" "$t/m" "$t/{n}.o" "$t/m" "$t/{n}.e"' for n in range(len(commands)))
    text = _opening(setting, mark) + notes + _sh("folder").replace("@MARK@", mark.decode()) + started + awaited
    limit = max((c.timeout for c in commands), default=0.0)
    reads = not any(c.changes for c in commands)
    agent = any(c.forward_agent for c in commands)
    return NodeScript(f"{text}cat {files}\nfinish 0\n", mark, limit, agent=agent, again=reads)


def write_command(content: bytes, path: str, mode: int) -> Command:
    """A command that writes a file atomically and only if every byte arrived."""
    seconds = 30 + len(content) / 1e6
    changes = f"write {path} ({len(content)} bytes)"
    args = (path, f"{mode:o}", str(len(content)), secrets.token_hex(8))
    return script(_sh("put"), *args, timeout=seconds, changes=changes, stdin=content)


def read_run(script: NodeScript, output: Output) -> Completed:
    """The result between the marks. The output must have ended."""
    code, stdout = _between(bytes(output.stdout), script.mark)
    stderr = _between(bytes(output.stderr), script.mark)[1]
    return Completed(_settle(code, script.limit, output.seconds), _text(stdout), _text(stderr))


def read_all(script: NodeScript, commands: Sequence[Command], output: Output) -> tuple[Completed, ...]:
    """One result per command, in order; () when the node had no place for their output."""
    code, body = _between(bytes(output.stdout), script.mark)
    parts = body.split(script.mark + b"|")[1:]
    if code != 0 or len(parts) != 3 * len(commands):
        return ()
    return tuple(_one_of(c, parts[3 * n : 3 * n + 3], output.seconds) for n, c in enumerate(commands))


def complaint(script: NodeScript, output: Output) -> str:
    """The text that the node's shell itself wrote to stderr."""
    return _text(_between(bytes(output.stderr), script.mark)[1]).strip()


def argv_of(script: NodeScript) -> tuple[tuple[str, ...], bytes]:
    """Argv that runs the script on this machine, and what to write to its stdin first."""
    text = _encoded(script)
    return ("sh", "-c", _FROM_STDIN.format(size=len(text)), "sparkwright"), text


def login_shell_line(script: NodeScript) -> tuple[str, bytes]:
    """The same as one line for a login shell of any kind, and what to write to its stdin first.

    Without backslashes, exclamation marks and newlines: fish and csh read them inside single quotes.
    """
    text = _encoded(script)
    return f"exec sh -c '{_FROM_STDIN.format(size=len(text))}' sparkwright", text


def _mark() -> bytes:
    return b"sparkwright-" + secrets.token_hex(12).encode()


def _opening(setting: ScriptSettings, mark: bytes) -> str:
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in setting.env)
    return exports + PRELUDE + filled(_sh("frame"), MARK=mark.decode(), SBIN=_SBIN, KILL=str(KILL_AFTER * 20))


def _note(setting: ScriptSettings, command: Command) -> str:
    """Text that appends `TIME who what` to the node's audit log (`~` is expanded there); '' where nothing changes."""
    if not command.changes:
        return ""
    line = shlex.quote(" ".join(f"{setting.who} {command.changes}".split()))
    return filled(_sh("note"), STATE=shlex.quote(setting.state), REST=line)


def _bounded(command: Command, seconds: float) -> str:
    named = ("env", *(f"{k}={v}" for k, v in command.env.items())) if command.env else ()
    argv, given = command.argv, ""
    if argv[:2] == ("sh", "-c") and len(argv[2]) > _SHOWN:
        given = f"SPARKWRIGHT_SCRIPT={shlex.quote(argv[2])} "
        argv = ("sh", "-c", _FROM_VARIABLE, *argv[3:])
    return given + shlex.join(("timeout", "-k", str(KILL_AFTER), f"{max(seconds, 0.05):g}", *named, *argv))


def _call(command: Command, seconds: float) -> str:
    call = _bounded(command, seconds)
    if not command.stdin:
        return f"watch <&3 >/dev/null 2>&1 &\n{call} </dev/null 3<&-\nfinish $?\n"
    count = len(command.stdin)
    feed = f"head -c {count} <&3 2>/dev/null; exec >&-; watch <&3 >/dev/null 2>&1 &"
    return f"{{ {feed} }} | {call} 3<&-\nfinish $?\n"


def _start(number: int, command: Command) -> str:
    given, source = "", "/dev/null"
    if command.stdin:
        source = f"$t/{number}.i"
        given = f'echo {base64.b64encode(command.stdin).decode()} | base64 -d >"{source}"\n'
    files = f'<"{source}" >"$t/{number}.o" 2>"$t/{number}.e"'
    return f"{given}{_bounded(command, command.timeout)} {files} 3<&- & p{number}=$!\n"


def _encoded(script: NodeScript) -> bytes:
    return script.text.encode("utf-8", "surrogateescape")


def _between(data: bytes, mark: bytes) -> tuple[int, bytes]:
    """Exit code of the closing mark and what is between the marks."""
    begin, end = data.find(mark + b"\n"), data.rfind(mark + b" ")
    body = data[begin + len(mark) + 1 : end if end >= 0 else None] if begin >= 0 else b""
    return (int(data[end + len(mark) :].split(None, 1)[0]) if end >= 0 else -1), body


def _one_of(command: Command, parts: Sequence[bytes], seconds: float) -> Completed:
    code, stdout, stderr = parts
    number = int(code) if code.strip().isdigit() else 137
    return Completed(_settle(number, command.timeout, seconds), _text(stdout), _text(stderr))


def _settle(code: int, limit: float, seconds: float) -> int:
    """`timeout` exits 137 when only KILL ended the command: after its time that is a timeout, too."""
    return 124 if code == 137 and seconds >= limit + KILL_AFTER else code


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")

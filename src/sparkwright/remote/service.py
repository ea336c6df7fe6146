"""Services on a node: units of systemd, or session leaders that start their program again when it ends.

Detached services live in `<home>/services/<name>`: pid (`PID START` as in process.py), mark, log.

A person's request to a supervisor is `request.json` in its folder, renewed for as long as the person's call lives. Only
the process whose nonce the request carries may renew, answer or withdraw it: another `up` may have come since.
"""

from collections.abc import Sequence

from sparkwright.domain.command import Command
from sparkwright.domain.service import Manager, Service
from sparkwright.remote.host import assigned, exported, script, script_texts
from sparkwright.remote.node_ssh import REWRITE

PYTHONS = ("python3", "python3.12", "python3.13", "python3.14", "python3.11")
MARK = "# sparkwright:"
ARCHIVE = "BUNDLE.tar.gz"
"""The program's files once more, in its folder."""
_sh = script_texts(__name__, MARK=MARK, ARCHIVE=ARCHIVE)


def service_host(state: str, more: Sequence[str] = ()) -> Command:
    """Sections user, state, python, addresses, manager, runtimes. more: Pythons to try last."""
    return script(_sh("show", "whole", "units", "answers", "seat"), state, *PYTHONS, *more, timeout=60)


def read_reach() -> Command:
    """Sections user, addresses, port, keys."""
    return script(_sh("show", "reach"))


def enable_linger(state: str) -> Command:
    changes = "enable linger, so that services of this user run without a login"
    return script(_sh("units", "answers", "linger"), state, timeout=60, changes=changes)


def unpack(state: str, digest: str, archive: bytes) -> Command:
    """Nothing where it is there already, whole. Exit 1 for an archive that is not the digest's."""
    changes, seconds = f"unpack the supervisor's program {digest}", 180.0 + len(archive) / 1e5
    return script(_sh("whole", "unpack"), state, digest, stdin=archive, timeout=seconds, changes=changes)


RESTORE = "restore.sh"
"""Script in a deployment's folder that restores damaged files of the program: `restore.sh RUNTIME`."""


def restore_script() -> bytes:
    return _sh("whole", "restore").encode()


def restored_first(home: str, runtime: str, argv: Sequence[str]) -> tuple[str, ...]:
    """The command of a program in `runtime` whose damaged files are restored first; `ps` shows the program alone.

    The program is started whatever becomes of the script: it may live without what is damaged.
    """
    return ("/bin/sh", "-c", 'sh "$0" "$1"; shift; exec "$@"', f"{home}/{RESTORE}", runtime, *argv)


def install(manager: Manager, name: str, text: str) -> Command:
    """Prints `same` when that very unit runs already; else writes, enables and (re)starts it."""
    return script(_sh("units", "install"), manager, name, text, timeout=60, changes=f"unit {name}")


def detach(service: Service, home: str, mark: str) -> Command:
    """The same without systemd."""
    mask, cwd = ("077" if service.private else "022"), service.cwd or home
    args = (home, service.name, mark, cwd, mask, *service.argv)
    given = assigned(leader=_sh("leader"), environment=exported(service.env))  # nothing of the caller's
    text = _sh("pid_functions", "detached") + given + _sh("detach")
    return script(text, *args, timeout=60, changes=f"start {service.name} in {home}")


def write(home: str, name: str, content: bytes, fresh: bool = False) -> Command:
    """Whole and on the disk before it returns, the one before as NAME.bak. fresh: forgets what was before."""
    args = (home, name, str(len(content)), "fresh" if fresh else "")
    return script(_sh("write"), *args, stdin=content, changes=f"write {home}/{name} ({len(content)} bytes)")


def read(home: str, name: str) -> Command:
    """The file's text; '' if it is missing."""
    return script('cat "$(x "$1")/$2" 2>/dev/null', home, name)


SILENT = 2
_USUAL, _PATIENT = 30.0, 600.0


def await_alive(home: str, usual: float = _USUAL, patient: float = _PATIENT) -> Command:
    """Exit 0 once the supervisor shows what it sees, 1 when it does not run: the last lines of its logs.

    One that lives after `usual` seconds is waited for, up to `patient`; then exit SILENT and a line about it.
    """
    text = _sh("units", "mine", "alive")
    return script(text, home, f"{usual:.0f}", f"{patient:.0f}", timeout=patient + 2 * usual)


def pause_supervisor(state: str, deployment: str) -> Command:
    """Ends the supervisor; its files, the gateway and its units stay. Prints `was` when it ran, and `nonce NONCE`."""
    text = _sh("units", "pid_functions", "detached", "mine", "copy", "pause")
    return script(text, state, deployment, timeout=60, changes=f"pause the supervisor of {deployment}")


def resume(state: str, deployment: str) -> Command:
    what = f"resume the supervisor of {deployment}"
    return script(_sh("units", "mine", "copy", "resume"), state, deployment, timeout=60, changes=what)


def remove(state: str, deployment: str, tag: str, why: str = "") -> Command:
    """Units, processes, folder, program, key: all that there is of it on a node. Prints `was` for what was there.

    why: for the audit log, where `taken_down` finds it.
    """
    what = f"disarm {deployment}{why and f': {why}'}"
    text = REWRITE + _sh("units", "pid_functions", "detached", "mine", "copy", "ended", "remove")
    return script(text, state, deployment, tag, timeout=90, changes=what)


def remove_unused_gateways(state: str) -> Command:
    """Ends and removes each gateway that no deployment of this node is behind any more."""
    text = _sh("units", "pid_functions", "detached", "mine", "ended", "unused")
    return script(text, state, timeout=90, changes="remove gateways without a deployment")


def taken_down(state: str, deployment: str) -> Command:
    """The audit log's last line about a `down` or a replacement of it, and the node's clock."""
    return script(_sh("taken"), state, deployment)


_HOME = 'h="$(x "$1")/supervision/$2"; f="$h/request.json"; [ -f "$h/desired.json" ] || exit 3\n'
_MINE = f'{_HOME}grep -qsF "\\"$3\\"" "$f" || exit 9\n'
_WRITE = 'umask 077; t=$(mktemp "$f.XXXXXX") && cat > "$t" && mv -f "$t" "$f"'
_DESIRED = 'h="$(x "$1")"; cat "$h/supervision/$2/desired.json" 2>/dev/null || cat "$h/deployments/$2/desired.json"'
_RECORD = """d="$(x "$1")/deployments/$2"; umask 077; mkdir -p "$d" && t=$(mktemp "$d/.desired.XXXXXX") || exit 1
cat > "$t" && mv -f "$t" "$d/desired.json"
"""


OCCUPIED = 9


def send_request(state: str, deployment: str, content: str, what: str, over: bool = False) -> Command:
    """Wait for up to 5 s until the supervisor has taken up the request before it; none is ever overwritten.

    over: take the place of a `replace`, whose owner has lost the leases. Exit 3 if no supervisor has a folder, OCCUPIED
    if another request is still there: prints its age in seconds and its text.
    """
    text, how = _sh("send"), "over" if over else ""
    return script(text, state, deployment, how, stdin=content.encode(), changes=f"{what} {deployment}")


def renew_request(state: str, deployment: str, nonce: str) -> Command:
    """Exit 3 where the supervisor was removed, 9 where the request is no longer ours."""
    return script(f'{_MINE}touch -c "$f"', state, deployment, nonce)


def answer_request(state: str, deployment: str, nonce: str, content: str) -> Command:
    """Replaces our request. Exit codes as with `renew`."""
    what = f"end the replacement of {deployment}"
    return script(_MINE + _WRITE, state, deployment, nonce, stdin=content.encode(), changes=what)


def withdraw_request(state: str, deployment: str, nonce: str) -> Command:
    return script(f'{_MINE}rm -f "$f"', state, deployment, nonce, changes=f"withdraw the request to {deployment}")


def read_desired(state: str, deployment: str) -> Command:
    """The settings that the deployment was started from, by its supervisor or an `up --no-supervise`; '' if unknown."""
    return script(f"{_DESIRED} 2>/dev/null", state, deployment)


def record_desired(state: str, deployment: str, content: str) -> Command:
    """The same, where no supervisor has it."""
    what = f"record what {deployment} was started from"
    return script(_RECORD, state, deployment, stdin=content.encode(), changes=what)

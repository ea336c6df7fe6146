"""The record of what `check --fix` changed on a node, and the way to root there."""

from dataclasses import replace

from sparkwright.domain.command import Command, Secret
from sparkwright.remote.host import script

NO_SUDO = 127
_RIGHTS = r"""
if [ "$(id -u)" = 0 ]; then echo root; exit 0; fi
command -v sudo >/dev/null 2>&1 || exit 127
LC_ALL=C exec sudo -n true
"""
# sudo empties the environment: what says where a test's tree is goes along by hand.
_AS_ROOT = r"""
[ "$(id -u)" != 0 ] || exec "$@"
exec sudo -n ${SPARKWRIGHT_SYSROOT:+env "SPARKWRIGHT_SYSROOT=$SPARKWRIGHT_SYSROOT"} "$@"
"""

# sudo takes the first line of stdin. -k: also where it remembers a password, or the line would go to the command.
_SUDO = r"""LC_ALL=C exec sudo -k -S -p '' """
_WITH_PASSWORD = (
    _SUDO
    + r"""${SPARKWRIGHT_SYSROOT:+env "SPARKWRIGHT_SYSROOT=$SPARKWRIGHT_SYSROOT"} """
    + r"""sh -c 'exec "$@" </dev/null' sparkwright "$@" """
)


def file(state: str) -> str:
    """Where the record is; state: Node.paths.state."""
    return f"{state}/fixes.json"


def show(state: str) -> Command:
    """The record as JSON; nothing where there is none."""
    return script('f="$(x "$1")"; [ ! -e "$f" ] || exec cat "$f"', file(state))


def rights(password: Secret | None = None) -> Command:
    """Prints `root` where the ssh user is root; else exit 0 when sudo asks for no password, 127 when there is none.

    password: one attempt with it.
    """
    if password:
        return script(f"{_SUDO} true", timeout=20.0, stdin=_line(password))
    return script(_RIGHTS, timeout=10.0)


def as_root(command: Command, password: Secret | None = None) -> Command:
    """The same without stdin, by sudo where the ssh user is not root. password: what sudo wants, if anything."""
    if password:
        argv = ("sh", "-c", _WITH_PASSWORD, "sparkwright", *command.argv)
        return replace(command, argv=argv, stdin=_line(password))
    return replace(command, argv=("sh", "-c", _AS_ROOT, "sparkwright", *command.argv))


def _line(password: Secret) -> bytes:
    return f"{password.reveal()}\n".encode()

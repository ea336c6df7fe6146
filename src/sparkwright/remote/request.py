"""A person's request to a supervisor: `request.json` in its folder, renewed for as long as the person's call lives.

Only the process whose nonce the request carries may renew, answer or withdraw it: another `up` may have come since.
"""

from sparkwright.domain.command import Command
from sparkwright.remote.host import script

_HOME = 'h="$(x "$1")/supervision/$2"; f="$h/request.json"; [ -f "$h/desired.json" ] || exit 3\n'
_MINE = f'{_HOME}grep -qsF "\\"$3\\"" "$f" || exit 9\n'
_WRITE = 'umask 077; cat > "$f.new" && mv -f "$f.new" "$f"'
_DESIRED = 'h="$(x "$1")"; cat "$h/supervision/$2/desired.json" 2>/dev/null || cat "$h/deployments/$2/desired.json"'
_RECORD = 'd="$(x "$1")/deployments/$2"; umask 077; mkdir -p "$d" && cat > "$d/desired.json"'


def ask(state: str, deployment: str, content: str, what: str) -> Command:
    """Exit 3 where no supervisor has a folder."""
    return script(_HOME + _WRITE, state, deployment, stdin=content.encode(), changes=f"{what} {deployment}")


def renew(state: str, deployment: str, nonce: str) -> Command:
    """Exit 3 where the supervisor was removed, 9 where the request is no longer ours."""
    return script(f'{_MINE}touch "$f"', state, deployment, nonce)


def answer(state: str, deployment: str, nonce: str, content: str) -> Command:
    """Replaces our request. Exit codes as with `renew`."""
    what = f"end the replacement of {deployment}"
    return script(_MINE + _WRITE, state, deployment, nonce, stdin=content.encode(), changes=what)


def withdraw(state: str, deployment: str, nonce: str) -> Command:
    return script(f'{_MINE}rm -f "$f"', state, deployment, nonce, changes=f"withdraw the request to {deployment}")


def desired(state: str, deployment: str) -> Command:
    """What the deployment was started from, by its supervisor or by an `up --no-supervise`; '' where nobody knows."""
    return script(f"{_DESIRED} 2>/dev/null", state, deployment)


def record(state: str, deployment: str, content: str) -> Command:
    """The same, where no supervisor has it."""
    what = f"record what {deployment} was started from"
    return script(_RECORD, state, deployment, stdin=content.encode(), changes=what)

"""One lease a node, machine-wide: whoever holds it may change what runs there.

link(2) makes taking it atomic with its content already in place; /run/lock is writable for every user and empty after
a reboot, so two people with two accounts meet, and a rebooted node is free. Renewal is the file's modification time.
"""

from sparkwright.commands.host import script
from sparkwright.domain.command import Command

HELD = 9
_WHERE = r"""
l="${SPARKWRIGHT_LOCK_DIR:-/run/lock}"; [ -w "$l" ] || l=/tmp
f="$l/sparkwright.lease"
age() { echo "$(( $(date +%s) - $(stat -c %Y "$f") ))"; }
"""


def take(content: str, nonce: str) -> Command:
    """Exit 0: taken (or ours already). Exit 9: held; stdout is `AGE` (seconds since it was renewed) and its content."""
    text = _WHERE + (
        'grep -qsF "$2" "$f" && exit 0\n'
        'umask 022; printf %s "$1" > "$f.$2" || exit 1\n'
        'ln "$f.$2" "$f" 2>/dev/null; rc=$?; rm -f "$f.$2"\n'
        f'[ $rc -eq 0 ] || {{ age; cat "$f"; exit {HELD}; }}'
    )
    return script(text, content, nonce, changes="take lease")


def seize(content: str, nonce: str) -> Command:
    """Takes it whoever held it (the user said so)."""
    text = _WHERE + 'umask 022; printf %s "$1" > "$f.$2" && mv -f "$f.$2" "$f" || { rm -f "$f.$2"; exit 1; }'
    return script(text, content, nonce, changes="seize lease")


def renew(nonce: str) -> Command:
    """Exit 1: it is no longer ours."""
    return script(_WHERE + 'grep -qsF "$1" "$f" && touch "$f"', nonce)


def release(nonce: str) -> Command:
    return script(_WHERE + 'if grep -qsF "$1" "$f"; then rm -f "$f"; fi', nonce, changes="release lease")


def show() -> Command:
    """`AGE` and content, or nothing."""
    return script(_WHERE + 'if [ -f "$f" ]; then age; cat "$f"; fi')

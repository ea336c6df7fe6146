"""One lease of each kind a node, machine-wide: its holder may change what runs there, or is stored there.

link(2) makes taking it atomic with its content already in place; /run/lock is writable for every user and empty after
a reboot, so two people with two accounts meet, and a rebooted node is free. Renewal is the file's modification time.
The file is in a folder of its own, because /run/lock is sticky: nobody could take over another account's lease there.
"""

from enum import StrEnum

from sparkwright.domain.command import Command
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)

HELD = 9
ODD = 8
TIMEOUT = 10.0


class Of(StrEnum):
    """The object of a lease: the ranks of the node, or the image and weights that are being copied there."""

    RANKS = "lease"
    STAGING = "staging-lease"


def _where(of: Of) -> str:
    return _sh("where").replace("@OF@", of)


def _label(of: Of) -> str:
    return of.replace("-", " ")


def take_lease(content: str, nonce: str, of: Of = Of.RANKS) -> Command:
    """Exit 0: taken (or ours already). Exit 9: held; stdout is `AGE` (seconds since it was renewed) and its content.

    Exit 8: something else is in its place; stderr has what, and whose.
    """
    text = _where(of) + (
        '[ -f "$f" ] && grep -qsF "\\"$2\\"" "$f" && exit 0\n'
        f"odd || exit {ODD}\n"
        'room; fresh "$1" "$2" || exit 1\n'
        # Given back between our attempt and the look at who holds it: then it is free, and the next attempt is due.
        "i=0; while [ $i -lt 100 ]; do i=$((i+1))\n"
        '  ln "$f.$2" "$f" 2>/dev/null; rc=$?\n'
        '  if [ $rc -eq 0 ] || held=$(age && cat "$f"); then break; fi\n'
        'done 2>/dev/null; rm -f "$f.$2"\n'
        f'[ $rc -eq 0 ] || {{ printf "%s\\n" "$held"; exit {HELD}; }}'
    )
    return script(text, content, nonce, timeout=TIMEOUT, changes=f"take {_label(of)}")


def seize_lease(content: str, nonce: str, of: Of = Of.RANKS) -> Command:
    """Takes it from any holder (the user asked for it)."""
    text = _where(of) + 'room; fresh "$1" "$2" && mv -fT "$f.$2" "$f" || { rm -f "$f.$2"; exit 1; }'
    return script(text, content, nonce, timeout=TIMEOUT, changes=f"seize {_label(of)}")


def renew_lease(nonce: str, of: Of = Of.RANKS) -> Command:
    """Exit 9: it is no longer ours; stdout as from `take_lease`."""
    text = _where(of) + (
        '[ -f "$f" ] && grep -qsF "\\"$1\\"" "$f" && exec touch -c "$f"\n'
        f'age 2>/dev/null; [ ! -f "$f" ] || cat "$f" 2>/dev/null; exit {HELD}'
    )
    return script(text, nonce, timeout=TIMEOUT)


def release(nonce: str, of: Of = Of.RANKS) -> Command:
    text = _where(of) + 'if [ -f "$f" ] && grep -qsF "\\"$1\\"" "$f"; then rm -f "$f"; fi'
    return script(text, nonce, timeout=TIMEOUT, changes=f"release {_label(of)}")


def show_lease(of: Of = Of.RANKS) -> Command:
    """`AGE` and content, or nothing."""
    return script(_where(of) + 'if [ -f "$f" ]; then age; cat "$f"; fi')

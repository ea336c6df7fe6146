"""Kernel release, command line and system; what matters in the kernel's log."""

import re

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.facts import Kernel, Unknown
from sparkwright.domain.host_facts import KernelLog, KernelNote
from sparkwright.facts.fact import Fact, assignments, decimal, not_understood, sections, whole
from sparkwright.remote.host import SHOW, script

_RELEASE = """
printf '@@ release\\n'; uname -r
show cmdline "$(at /proc/cmdline)"
show os "$(at /etc/os-release)"
"""
# Lines that differ only in numbers are told once, with how many they were: a driver that leaks writes one in each
# second. An Xid is told by its number. What cannot matter never leaves the node, and no more than 400 kinds of lines.
_LOG = r"""
digest() { LC_ALL=C awk '
  { read++ }
  !/@WORTH@/ || /ommand line: / { next }
  { gsub(/\t/, " "); line = substr($0, 1, 400); key = line
    sub(/^\[ *[0-9.]+\] /, "", key)
    if (match(key, /Xid \([^)]*\): [0-9]+/)) key = substr(key, RSTART, RLENGTH)
    else gsub(/0x[0-9a-fA-F]+|[0-9a-fA-F]*[0-9][0-9a-fA-F]*/, "#", key)
    if (!(key in count)) { if (kinds >= 400) next; order[++kinds] = key; first[key] = line }
    count[key]++; last[key] = line }
  END { print "@@ read"; print read + 0; print "@@ notes"
    for (i = 1; i <= kinds; i++) { k = order[i]; print count[k] "\t" first[k] "\t" last[k] } }'; }
if [ -n "$R" ]; then [ -r "$R/var/log/dmesg" ] && digest <"$R/var/log/dmesg"; exit; fi
some() { case $1 in "@@ read
0
"*) return 1 ;; esac; printf '%s\n' "$1"; exit 0; }
some "$(timeout 4 journalctl -k -q --no-pager -o short-monotonic -n 20000 2>/dev/null | digest)"
some "$(dmesg 2>/dev/null | digest)"
some "$(sudo -n dmesg 2>/dev/null | digest)"
echo 'this user may read neither the journal nor dmesg' >&2; exit 1
"""
# What any rule looks for in the log must match one of these, or it never leaves the node (tests/unit/rules holds it).
WORTH = (
    "NVRM|Xid|NV_ERR|nvidia",
    "mlx5_core|cx7-pcie|able plug|able remov|AER:|PCIe Bus Error|DOE|mt79",
    "ut of memory|oom-kill|Oops|BUG:|soft lockup|Kernel panic|Unable to handle|hermal",
    "Hardware Error|Memory failure|EDAC|nvme|I/O error|EXT4-fs error",
)


def release() -> Command:
    """Sections `release`, `cmdline`, `os`."""
    return script(SHOW + _RELEASE)


def log() -> Command:
    """Sections `read` (how many lines) and `notes` (count, first line, last line, parted by tabs).

    Of this boot, from the journal, else from the kernel's ring (sudo only where it asks for no password).
    """
    return script(_LOG.replace("@WORTH@", "|".join(WORTH).replace("/", r"\/")), timeout=10.0)


def parse(done: Completed) -> Kernel | Unknown:
    """os: PRETTY_NAME of os-release (`Ubuntu 24.04.3 LTS`), '' on a system that has no such file."""
    parts = sections(done.stdout)
    release = parts.get("release", "")
    if not release:
        return not_understood(done, "uname -r")
    system = dict(assignments(parts.get("os", "")))
    return Kernel(release, parts.get("cmdline", ""), system.get("PRETTY_NAME", system.get("NAME", "")))


KERNEL: Fact[Kernel] = Fact(release(), parse)


# `[    3.312611] text` of dmesg, `[    3.312611] host kernel: text` of the journal.
_LINE = re.compile(r"\[\s*([0-9]+\.[0-9]+)\]\s+(?:\S+ kernel: )?(.*)", re.ASCII)


def parse_log(done: Completed) -> KernelLog | Unknown:
    """Unknown when no line was read: a kernel is never silent, so that user may not read its log."""
    parts = sections(done.stdout)
    read = whole(parts.get("read", ""))
    if not read or read < 0:
        return not_understood(done, "reading the kernel log")
    notes = (_note(line) for line in parts.get("notes", "").splitlines())
    return KernelLog(read, tuple(note for note in notes if note))


def _note(line: str) -> KernelNote | None:
    count, _, rest = line.partition("\t")
    first, tab, latest = rest.partition("\t")
    number = whole(count)
    if number is None or not tab:
        return None
    began, text = _stamped(first)
    ended, last = _stamped(latest)
    return KernelNote(text, number, began, ended, last)


def _stamped(line: str) -> tuple[float | None, str]:
    found = _LINE.fullmatch(line.strip())
    return (decimal(found[1]), found[2].strip()) if found else (None, line.strip())


KERNEL_LOG: Fact[KernelLog] = Fact(log(), parse_log)

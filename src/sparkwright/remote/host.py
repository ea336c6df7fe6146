"""What is asked of any node with plain POSIX tools."""

from sparkwright.domain.command import Command, shell

# `~` comes from the cluster file and means the ssh user's home on the node, so it is the node that expands it.
# SPARKWRIGHT_SYSROOT lets tests and the demo put fixture trees in place of /proc and /sys.
# A non-interactive ssh session has no sbin on PATH on Debian, where `ip`, `rdma` and `ss` may live.
PRELUDE = r"""
x() { case "$1" in "~") printf %s "$HOME" ;; "~/"*) printf %s "$HOME/${1#"~/"}" ;; *) printf %s "$1" ;; esac; }
R="${SPARKWRIGHT_SYSROOT:-}"
PATH="${PATH:-/usr/local/bin:/usr/bin:/bin}:/usr/sbin:/sbin"
"""
# `show NAME FILE`: a section of the answer with what the file holds; no process is started for it.
# `at PATH`: where to read what every machine has. Fixture trees hold the hardware, the rest comes from the node itself.
SHOW = r"""
show() { printf '\n@@ %s\n' "$1"; [ -r "$2" ] || return 0
  while IFS= read -r l || [ -n "$l" ]; do printf '%s\n' "$l"; done <"$2"; }
at() { if [ -e "$R$1" ]; then printf %s "$R$1"; else printf %s "$1"; fi; }
"""
# Only these lines of dgx-release leave the node: the file also holds the machine's serial number.
_IDENTITY = r"""
show hostname "$(at /proc/sys/kernel/hostname)"
show machine-id "$(at /etc/machine-id)"
show boot-id "$(at /proc/sys/kernel/random/boot_id)"
show pid1 "$(at /proc/1/stat)"
show vendor "$R/sys/class/dmi/id/sys_vendor"
show product "$R/sys/class/dmi/id/product_name"
printf '@@ arch\n%s\n@@ user\n%s\n@@ home\n%s\n@@ dgx\n' "$(uname -m)" "$(id -un)" "$HOME"
grep -sE '^DGX_(PLATFORM|OTA_VERSION)=' "$R/etc/dgx-release"
exit 0
"""
_LISTENERS = r"""
if s=$(LC_ALL=C ss -ltnpH 2>/dev/null); then printf '@@ ss\n%s\n' "$s"; exit 0; fi
[ -r "$(at /proc/net/tcp)" ] || exit 1
show tcp "$(at /proc/net/tcp)"
show tcp6 "$(at /proc/net/tcp6)"
"""


def script(text: str, *args: str, timeout: float = 30.0, changes: str = "", stdin: bytes | None = None) -> Command:
    """A sh script with `x` (expands ~) and `$R` (system root) at hand; arguments arrive as $1, $2 ..."""
    return shell(PRELUDE + text, *args, timeout=timeout, changes=changes, stdin=stdin)


def identity() -> Command:
    """Sections hostname, machine-id, boot-id, pid1, vendor, product, arch, user, home, dgx."""
    return script(SHOW + _IDENTITY)


def meminfo() -> Command:
    return script('exec cat "$R/proc/meminfo"')


def listeners() -> Command:
    """Section `ss`, or where ss is missing `tcp` and `tcp6` as in /proc/net."""
    return script(SHOW + _LISTENERS)

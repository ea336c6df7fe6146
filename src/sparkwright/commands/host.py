"""What is asked of any node with plain POSIX tools."""

from sparkwright.domain.command import Command, shell

# `~` comes from the cluster file and means the ssh user's home on the node, so it is the node that expands it.
# SPARKWRIGHT_SYSROOT lets tests and the demo put fixture trees in place of /proc and /sys.
PRELUDE = r"""
x() { case "$1" in "~") printf %s "$HOME" ;; "~/"*) printf %s "$HOME/${1#"~/"}" ;; *) printf %s "$1" ;; esac; }
R="${SPARKWRIGHT_SYSROOT:-}"
"""


def script(text: str, *args: str, timeout: float = 30.0, changes: str = "", stdin: bytes | None = None) -> Command:
    """A sh script with `x` (expands ~) and `$R` (system root) at hand; arguments arrive as $1, $2 ..."""
    return shell(PRELUDE + text, *args, timeout=timeout, changes=changes, stdin=stdin)

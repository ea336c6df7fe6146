"""The kernel as asked on a node."""

from sparkwright.commands.host import SHOW, script
from sparkwright.domain.command import Command

_RELEASE = """
printf '@@ release\\n'; uname -r
show cmdline "$(at /proc/cmdline)"
show os "$(at /etc/os-release)"
"""


def release() -> Command:
    """Sections `release`, `cmdline`, `os`."""
    return script(SHOW + _RELEASE)

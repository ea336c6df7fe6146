"""Rebooting a node, which only root may."""

from sparkwright.domain.command import Command
from sparkwright.remote.host import script

_AS_ROOT = 'as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi; }\n'


def may() -> Command:
    """Exit 0 when the user may do it without a password, and there is a systemd that can."""
    text = "command -v systemctl >/dev/null && [ -d /run/systemd/system ] && as_root systemctl --version >/dev/null"
    return script(_AS_ROOT + text, timeout=10.0)


def reboot() -> Command:
    return script(_AS_ROOT + "as_root systemctl reboot", timeout=30.0, changes="reboot the node")

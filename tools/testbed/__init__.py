"""Two nodes as real as they can be without a GB10: system containers with systemd, sshd and a nested dockerd."""

from testbed.cluster import Testbed
from testbed.node import Node, Process
from testbed.settings import Settings
from testbed.shell import TestbedError

__all__ = ["Node", "Process", "Settings", "Testbed", "TestbedError"]

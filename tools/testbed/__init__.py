"""Two nodes as real as they can be without a GB10: system containers with systemd, sshd and a nested dockerd."""

from testbed.cluster import Testbed
from testbed.node import ContainerNode, NodeProcess
from testbed.settings import ContainerSettings
from testbed.shell import TestbedError

__all__ = ["ContainerNode", "ContainerSettings", "NodeProcess", "Testbed", "TestbedError"]

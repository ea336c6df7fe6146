"""python -m testbed build | up | down | status | ssh NODE [COMMAND...] | purge   (in tools/)"""

import os
import sys

from testbed.cluster import Testbed
from testbed.settings import ContainerSettings
from testbed.shell import TestbedError, narrator


def open_ssh(testbed: Testbed, words: list[str]) -> None:
    os.execvp("ssh", ["ssh", "-F", str(testbed.ssh_config), *words])


def main(words: list[str]) -> int:
    verb, *rest = words or ["help"]
    testbed = Testbed(ContainerSettings.from_environment(), narrator())
    verbs = {
        "build": testbed.build,
        "up": testbed.leave_running,
        "down": testbed.down,
        "purge": testbed.purge,
        "status": lambda: print(testbed.status()),
        "ssh": lambda: open_ssh(testbed, rest),
    }
    if verb not in verbs:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        verbs[verb]()
    except TestbedError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 1
    return 0


sys.exit(main(sys.argv[1:]))

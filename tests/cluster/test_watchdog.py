"""A program of ours that hangs is ended and started again by the node's real systemd."""

import pytest

from cluster.test_supervised import USER
from patience import wait_until
from sparkwright.adapters.bundle import Bundle
from sparkwright.domain.service import Manager, Service
from sparkwright.emit.systemd import unit_name, unit_text
from testbed import ContainerNode

pytestmark = pytest.mark.full
FOLDER = "/home/spark/watchdog"
HOME = f"{FOLDER}/supervision/drill"


def test_a_supervisor_that_is_stopped_is_another_process_soon(testbed_nodes: list[ContainerNode]) -> None:
    """Guards SIGSTOP, which no handler sees: the unit as `up` writes it, the program as the head has it."""
    head = testbed_nodes[0]
    runtime = f"{FOLDER}/runtime"
    head.sh(f"mkdir -p {runtime} {HOME}; echo torn > {HOME}/desired.json", user="spark")
    head.put(f"{FOLDER}/bundle.tgz", Bundle().archive())
    head.sh(f"tar -xzf {FOLDER}/bundle.tgz -C {runtime}", user="spark")
    argv = ("/usr/bin/python3", "-I", "-S", runtime, "run", "--home", HOME)
    service = Service("supervisor", argv, private=False, watchdog=True)
    unit = unit_name(service, "drill")
    # After a power cut logind may believe that a manager runs which has failed: starting it by name settles it.
    head.sh("loginctl enable-linger spark && systemctl start user@1000", timeout=120)
    head.sh("mkdir -p ~/.config/systemd/user", user="spark")
    wait_until(
        lambda: head.sh(f"{USER} is-system-running", user="spark", check=False),
        lambda: head.sh("systemctl status --no-pager user@1000; loginctl user-status --no-pager spark", check=False),
    )
    text = unit_text(service, "drill", HOME, Manager.USER, "spark")
    head.write(f"/home/spark/.config/systemd/user/{unit}", text, user="spark")
    try:
        head.sh(f"{USER} daemon-reload; {USER} start {unit}", user="spark", timeout=120)
        shown = f"{USER} show --property MainPID --value {unit}"
        before = head.sh(shown, user="spark")
        assert head.sh(f"{USER} is-active {unit}", user="spark") == "active", "it has reported that it is ready"
        wait_until(lambda: f'"pid": {before}' in head.sh(f"cat {HOME}/live.json", check=False), "its first report")
        head.sh(f"kill -STOP {before}")
        wait_until(lambda: head.sh(shown, user="spark", check=False) not in ("", "0", before), "another process")
        assert (
            "watchdog"
            in head.sh(
                f"{USER} show --property Result,StatusErrno {unit}; journalctl --no-pager -n 50 "
                "| grep -i watchdog | tail -3",
                check=False,
            ).lower()
        )
        wait_until(
            lambda: f'"pid": {head.sh(shown, user="spark")}' in head.sh(f"cat {HOME}/live.json", check=False),
            "a report",
        )
    finally:
        head.sh(f"{USER} stop {unit}; rm -rf {FOLDER} ~/.config/systemd/user/{unit}; {USER} daemon-reload; "
                "loginctl disable-linger spark", user="spark", check=False, timeout=120)  # fmt: skip

"""Faults of a fifth trial: cleaners, upgrades, tuning and habits of owners that no earlier list has."""

import time

from cluster.drive import SLOW as SLOW_BOOT
from drills.outage_drill import OutageScene
from drills.outage_faults import APART, NEXT, SECOND, Script, kill_rank
from drills.spoil import SESSIONS, cure_by_up
from drills.trial_faults import HOME, wait_until
from testbed import ContainerNode

USER_MANAGER = "XDG_RUNTIME_DIR=/run/user/$(id -u) systemctl --user"
VACUUM = (
    "journalctl --rotate --vacuum-time=1s; kill -9 $(pidof systemd-journald); sleep 1; "
    "systemctl restart systemd-journald"
)
CLEAN_TMP = "find /tmp /var/tmp -xdev -mindepth 1 -delete"
KILL_PYTHON = "pkill -9 -u spark python || :"
TASKS = "systemctl set-property --runtime user-1000.slice TasksMax={}"
FEW_TASKS = TASKS.format("$(cat /sys/fs/cgroup/user.slice/user-1000.slice/pids.current)")


def lose_known_hosts(scene: OutageScene) -> None:
    """Every known_hosts of the user on the head is empty, and the connections to the worker end; later `up`."""
    ground = scene.ground
    ground.head.sh(f"for f in $(find {HOME} /home/spark/.ssh -name known_hosts); do : >$f; done")
    ground.worker.sh(SESSIONS)
    cure_by_up(scene, 25.0)


def replace_login_key(scene: OutageScene) -> None:
    """The supervisor's own ssh key is made anew, as by a script that rotates keys; the rank dies, later `up`."""
    ground = scene.ground
    found = ground.head.sh(f"find {HOME} -path '*/ssh/*' -type f", check=False).split()
    keys = [path.removesuffix(".pub") for path in found if path.endswith(".pub")]
    scene.check(keys, f"no key among {found}")
    for key in keys:
        ground.head.sh(f"rm -f {key} {key}.pub && ssh-keygen -q -t ed25519 -N '' -f {key}", user="spark")
    ground.worker.sh(SESSIONS)
    time.sleep(3.0)
    scene.at = time.time()
    kill_rank(scene)
    cure_by_up(scene, 20.0)


def restart_services(scene: OutageScene) -> None:
    """Every service of ours on the head is restarted at once, as needrestart does after an upgrade of a library."""
    scene.ground.head.sh(f"{USER_MANAGER} restart 'sparkwright-*.service'", user="spark")
    scene.restored = time.time()


def few_files(seconds: float) -> Script:
    """The gateway's programs may open 24 files, as under somebody's `ulimit -n`."""

    def script(scene: OutageScene) -> None:
        head = scene.ground.head
        units = f"{USER_MANAGER} list-units --no-legend --plain 'sparkwright-*'"
        names = [row.split()[0] for row in head.sh(units, user="spark").splitlines()]
        pids = [
            head.sh(f"{USER_MANAGER} show --property MainPID --value {name}", user="spark").strip()
            for name in names
            if "caddy" in name or "door" in name
        ]
        kept = {pid: head.sh(f"prlimit --pid {pid} --nofile --noheadings --output SOFT", user="spark") for pid in pids}
        for pid in pids:
            head.sh(f"prlimit --pid {pid} --nofile=24:", user="spark")
        time.sleep(seconds)
        for pid, soft in kept.items():
            head.sh(f"prlimit --pid {pid} --nofile={soft.strip()}:", check=False, user="spark")
        scene.restored = time.time()

    return script


def no_docker_client(seconds: float) -> Script:
    """An upgrade takes the docker command of the worker away; the rank dies at once."""

    def script(scene: OutageScene) -> None:
        worker: ContainerNode = scene.ground.worker
        path = worker.sh("readlink -f $(command -v docker)").strip()
        worker.sh(f"mv {path} {path}.upgrading")
        scene.at = time.time()
        try:
            kill_rank(scene)
            time.sleep(seconds)
        finally:
            worker.sh(f"mv {path}.upgrading {path}")
        scene.restored = time.time()

    return script


def kill_second_up(scene: OutageScene) -> None:
    """`up` of another recipe gets SIGKILL while its ranks start; the same `up` again, and `down`, must work."""
    ground, second = scene.ground, scene.second()
    recipe = ground.recipe("process", SLOW_BOOT, name=NEXT, serving=APART)
    call = ground.drive.start("up", recipe, "--force", "two deployments side by side")
    begun = wait_until(lambda: ground.ranks(ground.worker, SECOND), 90.0)
    scene.check(begun, "the second `up` starts no rank")
    call.process.kill()
    time.sleep(5.0)
    again = ground.drive.run("up", recipe, "--force", "two deployments side by side", timeout=240)
    scene.notes.append(f"the same `up` 5 s later: exit {again.code} {' '.join(again.err.split())[-160:]}")
    scene.check(again.code == 0, "the same `up` does not work afterwards")
    down = ground.drive.run("down", NEXT, timeout=120)
    scene.check(down.code == 0, f"`down {NEXT}` exits {down.code}: {down.err[-160:]}")
    left = [words for node in ground.nodes for words in ground.ranks(node, SECOND)]
    scene.check(not left, f"ranks of {NEXT} are left: {left}")
    scene.restored = time.time()
    second.close()

"""Faults of a fourth trial: damaged certificates and programs, other people's settings of ssh, Docker and networks."""

import time

from cluster.drive import NAME
from drills.ground import PORT
from drills.outage_drill import OutageScene
from drills.outage_faults import Script, kill_rank, kill_unit
from drills.spoil import SESSIONS
from drills.trial_faults import HOME
from testbed import harm

CADDY, KEY_CHECK, SUPERVISOR = (kill_unit(lambda unit, part=part: part in unit) for part in ("caddy", "door", "superv"))
CERTIFICATES = f"{HOME}/door/ca/certificates/local"
SSHD = "/etc/ssh/sshd_config.d/00-theirs.conf"


GARBLE = f"for f in {CERTIFICATES}/*/*.crt; do head -c 600 /dev/urandom >$f; done"
EMPTY_CA = f"for f in {HOME}/door/ca/pki/authorities/local/*; do : >$f; done"
TRUNCATE_LOGS = f"find {HOME} -type f -name 'log*' -exec truncate -s 0 {{}} +"
LARGE = "-p tcp -m length --length 1300:65535 -j DROP"
LOSE_LARGE = f"iptables -I INPUT {LARGE}"
KEEP_LARGE = f"iptables -D INPUT {LARGE}"
OTHER_SSHD = (
    f"printf 'Port 2222\\nAllowUsers nobody\\nBanner /etc/issue\\n' >{SSHD}; systemctl stop ssh.socket 2>/dev/null; "
    f"systemctl restart ssh; {SESSIONS}"
)
ONE_SESSION = f"echo 'MaxSessions 1' >{SSHD}; systemctl restart ssh; {SESSIONS}"
USUAL_SSHD = f"rm -f {SSHD}; systemctl restart ssh"
RESTARTED_BY_DOCKER = "docker update --restart always $(docker ps -q --filter name=sparkwright-)"
EMPTY_PROGRAM = (
    f"find {HOME}/runtime -type f \\( -name '*.py' -o -name '*.toml' -o -name '*.sh' -o -name '*.json' \\) "
    "-exec truncate -s 0 {} +"
)


def restore_older_state(scene: OutageScene) -> None:
    """The head's state folder as it was before the last incident, put back while the supervisor runs; it is killed."""
    head = scene.ground.head
    head.sh(f"rm -rf /root/older && cp -a {HOME} /root/older")
    kill_rank(scene)
    scene.until_well()
    scene.at = time.time()
    head.sh(f"cp -a /root/older/. {HOME}/")
    SUPERVISOR(scene)
    scene.until_well()
    scene.at = time.time()
    kill_rank(scene)


def take_port(seconds: float) -> Script:
    """Another program gets the gateway's port as soon as Caddy is dead."""

    def script(scene: OutageScene) -> None:
        harm.steal_port(scene.ground.head, PORT)
        time.sleep(1.0)
        scene.at = time.time()
        CADDY(scene)
        time.sleep(seconds)
        harm.give_port_back(scene.ground.head)
        scene.restored = time.time()

    return script


def lose_gateway_setting(scene: OutageScene) -> None:
    """The key check's own setting is deleted and its process killed; 20 s later a person gives the same `up`."""
    ground = scene.ground
    ground.head.sh(f"rm -f {HOME}/supervision/_gateway-{PORT}/door/gateway.json")
    KEY_CHECK(scene)
    time.sleep(20.0)
    if scene.well(3.0):
        scene.notes.append("it came back by itself")
        return
    done = ground.drive.run("up", ground.recipe("process", None), timeout=180)
    scene.restored = time.time()
    scene.check(done.code == 0, f"`up` of {NAME} exits {done.code}: {done.err[-200:]}")
    scene.notes.append(f"`up`: exit {done.code}")

"""The findings about what prevents supervision. Codes SUP001 to SUP008 are never reused."""

from sparkwright.domain.check import Check, by_code
from sparkwright.domain.finding import WARN, Finding
from sparkwright.domain.service import ServiceHost

CHECKS = (
    Check("SUP001", WARN, "no supervisor: no Python 3.11 on the head").about(
        detects="no python3 of 3.11 or later on the head node.",
        cause="the supervisor runs on the node's own Python; DGX OS 7 has 3.12",
        fix="apt-get install python3 (or python3.12) there, then the same `sparkwright up` again; it goes on serving",
    ),
    Check("SUP002", WARN, "no automatic start of the supervisor after a reboot").about(
        detects="neither the user's systemd nor system units can be used on the head.",
        cause="neither the user's own systemd (with linger) nor system units (sudo without a password) can be used "
        "there",
        fix="after a reboot: the same `sparkwright up` again; or `sudo loginctl enable-linger USER` there, once",
    ),
    Check("SUP003", WARN, "no supervisor: worker not reachable by ssh").about(
        detects="the head cannot reach a worker with the supervisor's own key.",
        cause="the supervisor stops and starts ranks on all nodes; its own key was added on the worker, and the "
        "way fails",
        fix="let sshd on the worker accept public keys from the head's addresses, then the same `sparkwright up` again",
    ),
    Check("SUP004", WARN, "no supervisor: it does not run").about(
        detects="the supervisor was installed and does not run.",
        cause="its log on the node has the reason",
        fix="`sparkwright up` again; `sparkwright down` also removes what was set up",
    ),
    Check("SUP005", WARN, "no supervisor: installation failed").about(
        detects="a step of the installation on the head failed.",
        cause="a step on the node failed; what serves was left alone",
        fix="fix the reported error, then the same `sparkwright up` again",
    ),
    Check("SUP006", WARN, "no gateway: installation failed").about(
        detects="a step of the installation of the gateway on the head failed.",
        cause="a step on the node failed; the engine serves where only the head, or the fabric, reaches it",
        fix="fix the reported error, then the same `sparkwright up` again; until then `ssh -L` reaches the engine",
    ),
    Check("SUP007", WARN, "no supervisor: nodes are locked by another command").about(
        detects="another command has held the lease of the nodes for too long.",
        cause="two who change the same nodes would undo each other's work; what serves was left alone",
        fix="when that is done: the same `sparkwright up` again",
    ),
    Check("SUP008", WARN, "model output is garbage").about(
        detects="the first answer of the model is not language.",
        cause="random or damaged weights, or kernels that do not fit this GPU; a restart does not change that",
        fix="ask it something; then another checkpoint, another quantization, or another version of the engine",
    ),
)
_SUP = by_code(CHECKS)


def no_python(node: str, host: ServiceHost) -> Finding:
    """SUP001: the head has no Python that the supervisor could run on."""
    return _SUP["SUP001"].on(node, f"there is {host.seen}" if host.seen else "there is none on the PATH")


def nobody_after_a_reboot(node: str, why: str) -> Finding:
    """SUP002: nothing brings the supervisor back after a reboot."""
    return _SUP["SUP002"].on(node, why)


def no_way(node: str, worker: str, said: str) -> Finding:
    """SUP003: the head cannot reach a worker by ssh."""
    return _SUP["SUP003"].on(
        node,
        said,
        title=f"no supervisor: it would not reach {worker} from here by ssh",
        fix=f"let sshd on {worker} take public keys from this node's addresses, then the same `sparkwright up` again",
    )


def did_not_start(node: str, said: str) -> Finding:
    """SUP004: the supervisor was set up and does not run."""
    return _SUP["SUP004"].on(node, said)


def not_set_up(node: str, said: str) -> Finding:
    """SUP005: the supervisor could not be set up on the head."""
    return _SUP["SUP005"].on(node, said)


def no_gateway(node: str, said: str) -> Finding:
    """SUP006: the gateway could not be set up on the head."""
    return _SUP["SUP006"].on(node, said)


def not_now(node: str, said: str) -> Finding:
    """SUP007: somebody else has had the lease for too long."""
    return _SUP["SUP007"].on(node, said)


def garbage_from_the_start(deployment: str, why: str, answer: str) -> Finding:
    """SUP008: the first answer of the model is garbage."""
    return _SUP["SUP008"].on(deployment, f"{why}: {answer[:80]!r}")

"""The findings about what prevents supervision. Codes SUP001 to SUP008 are never reused."""

from sparkwright.domain.check import Check, by_code, explained
from sparkwright.domain.finding import WARN, Finding
from sparkwright.domain.service import ServiceHost

CHECKS = explained(
    __file__,
    Check("SUP001", WARN, "no supervisor: no Python 3.11 on the head"),
    Check("SUP002", WARN, "no automatic start of the supervisor after a reboot"),
    Check("SUP003", WARN, "no supervisor: worker not reachable by ssh"),
    Check("SUP004", WARN, "no supervisor: it does not run"),
    Check("SUP005", WARN, "no supervisor: installation failed"),
    Check("SUP006", WARN, "no gateway: installation failed"),
    Check("SUP007", WARN, "no supervisor: nodes are locked by another command"),
    Check("SUP008", WARN, "model output is garbage"),
)
_SUP = by_code(CHECKS)


def no_python(node: str, host: ServiceHost) -> Finding:
    """SUP001: the head has no Python that the supervisor could run on."""
    return _SUP["SUP001"].on(node, f"there is {host.seen}" if host.seen else "there is none on the PATH")


def nobody_after_a_reboot(node: str, why: str) -> Finding:
    """SUP002: nothing starts the supervisor after a reboot."""
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

"""The words of what stands in the way of supervision. Codes SUP001 to SUP008 are never reused."""

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.service import Seat


def no_python(node: str, seat: Seat) -> Finding:
    """SUP001: the head has no Python that the supervisor could run on."""
    return Finding(
        "SUP001",
        Severity.WARN,
        node,
        "no supervisor: this node has no python3 of 3.11 or later",
        f"there is {seat.seen}" if seat.seen else "there is none on the PATH",
        "the supervisor runs on the node's own Python; DGX OS 7 has 3.12",
        "apt-get install python3 (or python3.12) there, then the same `sparkwright up` again; it goes on serving",
    )


def nobody_after_a_reboot(node: str, why: str) -> Finding:
    """SUP002: nothing brings the supervisor back after a reboot."""
    return Finding(
        "SUP002",
        Severity.WARN,
        node,
        "supervised, but nothing brings the supervisor back after a reboot of this node",
        why,
        "neither the user's own systemd (with linger) nor system units (sudo without a password) can be used there",
        "after a reboot: the same `sparkwright up` again; or `sudo loginctl enable-linger USER` there, once",
    )


def no_way(node: str, worker: str, said: str) -> Finding:
    """SUP003: the head cannot reach a worker by ssh."""
    return Finding(
        "SUP003",
        Severity.WARN,
        node,
        f"no supervisor: it would not reach {worker} from here by ssh",
        said,
        "the supervisor stops and starts ranks on all nodes; its own key was added on the worker, and the way fails",
        f"let sshd on {worker} take public keys from this node's addresses, then the same `sparkwright up` again",
    )


def did_not_start(node: str, said: str) -> Finding:
    """SUP004: the supervisor was set up and does not run."""
    return Finding(
        "SUP004",
        Severity.WARN,
        node,
        "no supervisor: it was set up and does not run",
        said,
        "its own log on the node says why",
        "`sparkwright up` again; `sparkwright down` also removes what was set up",
    )


def not_set_up(node: str, said: str) -> Finding:
    """SUP005: the supervisor could not be set up on the head."""
    return Finding(
        "SUP005",
        Severity.WARN,
        node,
        "no supervisor: it could not be set up",
        said,
        "a step on the node failed; what serves was left alone",
        "mend what it says, then the same `sparkwright up` again",
    )


def no_gateway(node: str, said: str) -> Finding:
    """SUP006: the gateway could not be set up on the head."""
    return Finding(
        "SUP006",
        Severity.WARN,
        node,
        "supervised, but without a gateway: it could not be set up",
        said,
        "a step on the node failed; the engine serves where only the head, or the fabric, reaches it",
        "mend what it says, then the same `sparkwright up` again; until then `ssh -L` reaches the engine",
    )


def not_now(node: str, said: str) -> Finding:
    """SUP007: somebody else has had the lease for too long."""
    return Finding(
        "SUP007",
        Severity.WARN,
        node,
        "supervision was not set up: somebody else is changing these nodes",
        said,
        "two who change the same nodes would undo each other's work; what serves was left alone",
        "when that is done: the same `sparkwright up` again",
    )


def garbage_from_the_start(deployment: str, why: str, answer: str) -> Finding:
    """SUP008: the first answer of the model is garbage."""
    return Finding(
        "SUP008",
        Severity.WARN,
        deployment,
        "the model answers garbage",
        f"{why}: {answer[:80]!r}",
        "random or damaged weights, or kernels that do not fit this GPU; a restart does not change that",
        "ask it something; then another checkpoint, another quantization, or another version of the engine",
    )

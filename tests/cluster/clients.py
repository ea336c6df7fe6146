"""A client of the gateway that asks all along, and what it got."""

import http.client
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cluster.drive import NAME
from patience import PATIENCE, wait_until
from testbed import ContainerNode

_EVERY = 0.1


@dataclass
class PollingClient:
    """answers: (monotonic seconds, status, error code, message, Retry-After); status 0: no HTTP answer at all.

    resets: connections that were reset before an answer, and made once more, as clients' libraries do.
    """

    address: str
    port: int
    key: str
    answers: list[tuple[float, int, str, str, str]] = field(default_factory=list)
    resets: int = 0
    model: str = "twin-tiny"

    def statuses(self) -> set[int]:
        return {status for _, status, *_ in self.answers}

    def around(self, expected: set[int]) -> str:
        """The unexpected answers, with the two before and after each, a line each: pytest cuts lists."""
        at = [n for n, answer in enumerate(self.answers) if answer[1] not in expected]
        return "\n".join(str(a) for n, a in enumerate(self.answers) if any(abs(n - other) <= 2 for other in at))

    @property
    def refusals(self) -> list[tuple[str, str, str]]:
        return [(code, message, after) for _, status, code, message, after in self.answers if status == 503]

    def once(self) -> tuple[int, str, str, str]:
        try:
            return self._once()
        except ConnectionResetError:
            self.resets += 1
        try:
            return self._once()
        except ConnectionResetError as error:
            return 0, "", f"again: {error!r}", ""

    def _once(self) -> tuple[int, str, str, str]:
        link = http.client.HTTPSConnection(
            self.address, self.port, timeout=60, context=ssl._create_unverified_context()
        )
        try:
            body = json.dumps({"model": self.model, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1})
            link.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {self.key}"})
            answer = link.getresponse()
            told = json.loads(answer.read())
            error = told.get("error") or {}
            return answer.status, str(error.get("code")), str(error.get("message")), answer.headers["Retry-After"] or ""
        except ConnectionResetError:
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            return 0, "", repr(error), ""
        finally:
            link.close()

    def wait(self, status: int) -> None:
        end = time.monotonic() + PATIENCE
        while (last := self.once())[0] != status:
            assert time.monotonic() < end, f"no {status} within {PATIENCE:g} s: last {last}, before {self.answers[-3:]}"


@contextmanager
def asking(node: ContainerNode, home: Path, port: int = 8443) -> Iterator[PollingClient]:
    """Sends a completion every tenth of a second while open."""
    key = next((home / ".local/state/sparkwright/keys/testbed").glob("*.key")).read_text().strip()
    made, over = PollingClient(node.mgmt, port, key), threading.Event()
    made.wait(200)

    def go() -> None:
        while not over.wait(_EVERY):
            at = time.monotonic()
            made.answers.append((at, *made.once()))

    thread = threading.Thread(target=go)
    thread.start()
    try:
        yield made
    finally:
        over.set()
        thread.join()


def no_start_timed(head: ContainerNode) -> None:
    """Requests are refused at once then: the gateway holds them where a start takes less than 10 s."""
    folder = f"/home/spark/.local/state/sparkwright/supervision/{NAME}"
    script = f'cd {folder} && sed -i \'s/"started in": [0-9.e-]*/"started before": 0/\' figures.json && cat live.json'
    wait_until(lambda: json.loads(head.sh(script, user="spark"))["usual"] == 0, "the supervisor knows no usual start")

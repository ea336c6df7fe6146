"""The reports of `status`, the history and the gateway while clients get nothing, and afterwards."""

import json
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from cluster.drive import NAME, CallResult, CommandDriver
from cluster.test_supervised import HOME, STATE, USER, read_live
from cluster.test_supervised import SERVING as ALIVE
from patience import PATIENCE, wait_until
from testbed import ContainerNode, harm

PORT = 8443
TOKENS = {
    "SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0.03",
    "SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "1",
    "SPARKWRIGHT_SIMULATOR_STEP_MS": "8",
}
SERVING = {"expose": "all", "api_key_env": "DRILL_KEY", "door": {"port": PORT}}


@pytest.fixture
def driver(driver: CommandDriver) -> CommandDriver:
    driver.supervise = True
    driver.env = {"DRILL_KEY": "sk-drill-0123456789"}
    return driver


@dataclass
class Clients:
    """Two clients in a row of requests each, as users have them: one answer, then the next question."""

    url: str
    key: str
    answers: list[tuple[float, int, dict[str, Any]]] = field(default_factory=list)
    """When it came, its status (0: the connection failed), its body."""
    _over: threading.Event = field(default_factory=threading.Event)

    def ask(self, tokens: int = 48) -> tuple[int, dict[str, str], dict[str, Any]]:
        """Status, headers in small letters, body."""
        body = {"model": "twin-tiny", "messages": [{"role": "user", "content": "hello"}], "max_tokens": tokens}
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        whoever = ssl._create_unverified_context()
        request = urllib.request.Request(f"{self.url}/v1/chat/completions", json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=180, context=whoever) as answer:
                return answer.status, dict(answer.headers), json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, {name.lower(): value for name, value in error.headers.items()}, error_body(error.read())
        except OSError:
            return 0, {}, {}

    def _go_on(self) -> None:
        while not self._over.is_set():
            status, _, body = self.ask()
            self.answers.append((time.time(), status, body))
            self._over.wait(0.3)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._go_on, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            wait_until(lambda: len(self.answers) >= 4, "answers")
            yield
        finally:
            self._over.set()

    def answered(self, since: float) -> bool:
        return any(status == 200 for at, status, _ in self.answers if at > since)


def error_body(body: bytes) -> dict[str, Any]:
    """The body of a refusal; an engine that falls answers in plain text, as vLLM's server does."""
    try:
        return dict(json.loads(body))
    except ValueError:
        return {"text": body.decode("utf-8", "replace")}


def clients(drive: CommandDriver, runtime: str = "process") -> Clients:
    """The clients of a deployment started just now."""
    drive.good("up", drive.recipe(runtime, TOKENS, serving=SERVING))
    head = drive.testbed.nodes[0]
    wait_until(lambda: read_live(head).get("canary"), "its own first look")
    return Clients(f"https://{head.mgmt}:{PORT}", drive.env["DRILL_KEY"])


def is_idle(seen: dict[str, Any]) -> bool:
    """True if figures younger than the supervisor's own last question show no work."""
    engine, canary = seen.get("engine"), seen.get("canary")
    return bool(engine and canary) and engine["at"] > canary["at"] and not engine["running"] and not engine["waiting"]


def listed_codes(drive: CommandDriver) -> list[str]:
    return [one["code"] for one in drive.good("incidents list", NAME, "--json").json["incidents"]]


def run_status(drive: CommandDriver) -> CallResult:
    return drive.run("status", NAME)


def wait_for_status(drive: CommandDriver, true: Callable[[CallResult], bool]) -> tuple[float, CallResult]:
    """Seconds until `status` was so, from its call to its end."""
    began, seen = time.monotonic(), dict[str, float]()
    while not true(done := run_status(drive)):
        seen.setdefault(done.out.partition("\n")[0], time.monotonic() - began)
        assert time.monotonic() - began < PATIENCE, f"seen, after seconds: {seen}\n{done}"
    return time.monotonic() - began, done


@pytest.mark.full
@pytest.mark.parametrize("seconds", [20, pytest.param(70, marks=pytest.mark.full)])
def test_a_cut_fabric_is_never_called_ready_and_stays_in_the_history(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], seconds: int
) -> None:
    """Right after a start: too soon for a relaunch, but the word is true and the outage leaves a trace."""
    asking = clients(driver)
    with asking.at_work():
        wait_for_status(driver, lambda done: done.code == 0)
        harm.set_fabric(testbed_nodes[1], up=False)
        cut = time.time()
        took, said = wait_for_status(driver, lambda done: done.code == 1 and "no token for" in done.out)
        print(f"fabric cut for {seconds} s: not ready after {took:.1f} s\n{said.out}")
        assert ": ready" not in said.out.splitlines()[0]
        time.sleep(max(cut + seconds - 1 - time.time(), 0))
        still = run_status(driver)
        harm.set_fabric(testbed_nodes[1], up=True)
        back = time.time()
        assert still.code == 1 and "no token for" in still.out, still.out
        wait_until(lambda: asking.answered(back), lambda: f"an answer; the last ones: {asking.answers[-4:]}")
        was_away = time.time() - cut
        wait_for_status(driver, lambda done: done.code == 0)
    wait_until(
        lambda: listed_codes(driver) == ["LIVE005"], "an incident, explained by the link that the supervisor saw down"
    )
    (incident,) = driver.good("incidents list", NAME, "--json").json["incidents"]
    print(f"away {was_away:.0f} s for clients; {driver.good('incidents list', NAME).out}")
    assert incident["kind"] == "stalled" and "without a restart" in incident["outcome"]
    assert read_live(testbed_nodes[0])["relaunches"] == 0
    assert incident["away"] == pytest.approx(was_away, abs=15)


@pytest.mark.full
def test_a_request_to_a_frozen_server_is_counted_by_the_gateway(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """Frozen while nobody asks: the engine's last figures report no request for ever, and the gateway has one."""
    asking, head = clients(driver), testbed_nodes[0]
    pids = " ".join(str(p.pid) for p in head.processes() if "-m sparkwright.simulator serve" in p.command)
    wait_until(lambda: is_idle(read_live(head)), "figures of an engine without work")  # they are its last words
    head.sh(f"kill -STOP {pids}")
    threading.Thread(target=asking.ask, daemon=True).start()
    told = "1 request in flight at the gateway, none reported by the engine, no token for"
    took, said = wait_for_status(driver, lambda done: told in done.out and done.code == 1)
    print(f"shown after {took:.1f} s\n{said.out}")
    head.sh(f"kill -CONT {pids}", check=False)  # the supervisor may have stopped them in the meantime
    wait_for_status(driver, lambda done: done.code == 0)


@pytest.mark.full
@pytest.mark.parametrize("rank", [0, pytest.param(1, marks=pytest.mark.full)])
def test_a_frozen_rank_counts_from_the_first_request_that_got_nothing(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], rank: int
) -> None:
    """SIGSTOP right after a start: the word is true within seconds, and `away` is what clients had."""
    asking = clients(driver)
    with asking.at_work():
        pids = [p.pid for p in testbed_nodes[rank].processes() if "-m sparkwright.simulator serve" in p.command]
        testbed_nodes[rank].sh(f"kill -STOP {' '.join(map(str, pids))}")
        at = time.time()
        took, said = wait_for_status(driver, lambda done: done.code == 1 and "no token for" in done.out)
        print(f"rank {rank} frozen: not ready after {took:.1f} s\n{said.out}")
        wait_until(
            lambda: read_live(testbed_nodes[0])["relaunches"] == 1 and read_live(testbed_nodes[0])["phase"] in ALIVE,
            "the relaunch",
        )
        again = time.time()
        wait_until(lambda: asking.answered(again), lambda: f"an answer; the last ones: {asking.answers[-4:]}")
        was_away = again - at
    (incident,) = driver.good("incidents list", NAME, "--json").json["incidents"]
    print(f"away {was_away:.0f} s for clients; {driver.good('incidents show', '1').out}")
    assert incident["kind"] == "frozen" and incident["away"] == pytest.approx(was_away, abs=15)


@pytest.mark.full
def test_a_docker_that_is_stopped_is_named_and_waited_for(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """Nobody has removed a rank: status and 503 name Docker and its node, and it serves again once Docker is back."""
    asking, worker = clients(driver, "docker"), testbed_nodes[1]
    with asking.at_work():
        worker.sh("systemctl stop docker.socket docker.service", check=False)
        try:
            _, said = wait_for_status(driver, lambda done: "waiting for Docker on spark-2" in done.out)
            status, headers, body = asking.ask()
            print(f"{said.out}\n{status} {headers.get('retry-after')} {body}")
            assert said.code in (1, 3) and "removed" not in said.out
            assert "Docker is not running on spark-2" in said.out
            assert status == 503 and "waiting for Docker on spark-2" in body["error"]["message"]
            assert "a start usually takes" in body["error"]["message"] and int(headers["retry-after"]) <= 15
        finally:
            worker.sh("systemctl start docker.socket docker.service", check=False)
        back = time.time()
        wait_until(lambda: asking.answered(back), lambda: f"an answer; the last ones: {asking.answers[-4:]}")
        print(f"serving {time.time() - back:.1f} s after Docker was back")
    told = [body["error"]["message"] for _, status, body in asking.answers if status == 503]
    assert not [one for one in told if "removed" in one], told
    (incident,) = driver.good("incidents list", NAME, "--json").json["incidents"]
    assert "removed" not in incident["what"], incident["what"]


@pytest.mark.full
def test_restarts_of_gateway_key_check_and_supervisor_are_recorded(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """Killed one after the other under clients: each is counted in status, and stays in the log and the history."""
    asking, head = clients(driver), testbed_nodes[0]
    with asking.at_work():
        wait_until(lambda: "process:door" in head.sh(f"cat {HOME}/figures.json"), "its first look at the programs")
        for name in ("caddy", "door", "supervisor"):
            unit = f"sparkwright-{name}-{NAME if name == 'supervisor' else '_gateway-8443'}.service"
            head.sh(f"{USER} kill --signal KILL {unit}", user="spark")
            if name == "supervisor":
                said = run_status(driver).out
                assert "nothing restarts it" not in said, said
            wait_until(
                lambda unit=unit: head.sh(f"{USER} is-active {unit}", user="spark", check=False) == "active", unit
            )
        who = ("gateway (Caddy) 1", "key check 1", "supervisor 1")
        _, done = wait_for_status(driver, lambda done: all(one in done.out for one in who))
        print(done.out)
    asked = "SELECT count(*) FROM events WHERE kind = 'restarted'"
    reader = f'import sqlite3; print(sqlite3.connect(\'{STATE}/store.sqlite\').execute("""{asked}""").fetchone()[0])'

    def recorded() -> int:
        return int(head.exec(["python3", "-c", reader]).stdout)

    wait_until(lambda: recorded() >= 3, "the history of all three")  # `status` counts a restart before it is stored
    assert recorded() == 3
    log = head.sh(f"cat {HOME}/log")
    assert all(f"the {one.removesuffix(' 1')} was restarted" in log for one in who)

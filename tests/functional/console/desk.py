"""A simulated cluster that serves on this machine as `up` leaves it: supervisor, gateway, key check and console."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx

from fakes.ports import free_port
from functional.command import UserShell
from functional.gateway.head import free_pair
from patience import wait_until
from sparkwright.cli.demo import cluster_yaml
from sparkwright.domain.codec import Unreadable, from_json
from sparkwright.domain.live import Live
from sparkwright.simulator.nodes import make_cluster

_RECIPE = Path(__file__).parents[3] / "src/sparkwright/recipes/shipped/simulator.yaml"
# The one of this .venv, as Debian's own is too old.
_CADDY = shutil.which("caddy", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


@dataclass
class ConsoleCluster:
    """A user's machine and the two nodes, all below one folder. scale: of the supervisor's waits."""

    shell: UserShell
    scale: str = "0.1"
    ports: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cluster = replace(make_cluster(self.shell.folder / "nodes"), simulated=False)
        (self.shell.folder / "cluster.yaml").write_text(cluster_yaml(cluster))
        (self.shell.folder / "nodes/spark-1/bin/caddy").symlink_to(_CADDY or "/nowhere")

    @property
    def state(self) -> Path:
        return self.shell.folder / "nodes/spark-1/home/.local/state/sparkwright"

    def run(self, *words: str) -> str:
        code, out, err = self.shell.run(*words, SPARKWRIGHT_SUPERVISOR_SCALE=self.scale)
        assert code == 0, f"{' '.join(words)}: {code}\n{out}\n{err}"
        return out

    def up(self, name: str = "twin", served: str = "twin-tiny", behind: str = "", **env: str) -> None:
        """env: of the ranks, as SPARKWRIGHT_SIMULATOR_... has it. behind: the deployment whose gateway it shares."""
        self.ports[name] = self.ports[behind] if behind else free_pair()
        text = _RECIPE.read_text().replace("served_name: twin-tiny", f"served_name: {json.dumps(served)}")
        text = text.replace("name: simulator\n", f"name: {name}\n", 1)
        own = f"  port: {free_port()}\n  master_port: {free_port()}\n  gateway: {{port: {self.ports[name]}}}\n"
        text = text.replace("serving:\n", f"serving:\n{own}")
        control = {
            "SPARKWRIGHT_SIMULATOR_CONTROL": str(self.faults(name)),
            "SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0.01",
            **env,
        }
        more = "".join(f"  {key}: '{value}'\n" for key, value in control.items())
        (self.shell.folder / f"{name}.yaml").write_text(f"{text}\nenv:\n{more}")
        self.run("up", f"./{name}.yaml", "--force", "no GPU here")

    def faults(self, name: str = "twin") -> Path:
        return self.shell.folder / f"faults-{name}"

    def key(self, name: str, role: str, deployment: str = "") -> str:
        words = [name, *([deployment] if deployment else [])]
        return str(json.loads(self.run("keys", "add", *words, "--role", role, "--show", "--json"))["key"])

    def live(self, name: str = "twin") -> Live | None:
        with suppress(OSError, Unreadable):
            return from_json(Live, (self.state / "supervision" / name / "live.json").read_bytes())
        return None

    def wait_until(self, true: Callable[[Live], bool], name: str = "twin") -> None:
        def so() -> bool:
            live = self.live(name)
            return live is not None and true(live)

        wait_until(so, lambda: f"{self.live(name)}")

    def wait_until_ready(self) -> None:
        """Wait: on a busy machine its supervisor, whose waits are a tenth, may just have started it again."""
        self.wait_until(lambda live: live.phase == "ready")

    def pids(self, rank: int, name: str = "twin") -> list[int]:
        mark = re.compile(rb"SPARKWRIGHT_RANK_DIR=[^\0]*/%b/rank%d\0" % (name.encode(), rank))
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                environ = (entry / "environ").read_bytes()
                if mark.search(environ) and bytes(self.shell.folder) in environ:
                    found.append(int(entry.name))
        return found

    def kill(self, rank: int, name: str = "twin") -> None:
        for pid in self.pids(rank, name):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def service(self, program: str, name: str = "twin") -> int:
        """The process id of one of the head's programs, 0 while there is none."""
        with suppress(OSError, ValueError):
            home = name if program == "supervisor" else f"_gateway-{self.ports[name]}"
            return int((self.state / "supervision" / home / "services" / program / "child").read_text())
        return 0

    def url(self, path: str = "", name: str = "twin") -> str:
        return f"https://localhost:{self.ports[name]}/console/{path}"

    def api(self, path: str) -> str:
        return f"https://localhost:{self.ports['twin']}/v1/{path}"

    def client(self, cookie: str = "", name: str = "twin") -> httpx.Client:
        """A client of the gateway, whose certificate is not the matter here."""
        headers = {"Cookie": cookie} if cookie else {}
        return httpx.Client(base_url=self.url(name=name), verify=_UNVERIFIED, headers=headers, timeout=30)

    def get(self, path: str, cookie: str = "", name: str = "twin") -> httpx.Response:
        with self.client(cookie, name) as client, client.stream("GET", path) as answer:
            if "event-stream" not in answer.headers.get("content-type", ""):
                answer.read()
            return answer

    def post(self, path: str, cookie: str = "", name: str = "twin", **fields: str) -> httpx.Response:
        origin = {"Origin": self.url(name=name).removesuffix("/console/")}
        with self.client(cookie, name) as client:
            return client.post(path, data=fields, headers=origin)

    def signed_in(self, key: str, name: str = "twin") -> str:
        """The cookie of a new session."""
        answer = self.post("login", name=name, key=key)
        assert answer.status_code == 303, answer.text
        return answer.headers["Set-Cookie"].partition(";")[0]


_UNVERIFIED = ssl.create_default_context()
_UNVERIFIED.check_hostname, _UNVERIFIED.verify_mode = False, ssl.CERT_NONE


@contextmanager
def made_desk(folder: Path, scale: str = "0.1") -> Iterator[ConsoleCluster]:
    desk = ConsoleCluster(UserShell(folder), scale)
    try:
        yield desk
    finally:
        for name in desk.ports:
            desk.shell.run("down", name)
        desk.shell.clean()

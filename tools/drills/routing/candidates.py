"""The candidates, each set up as its manual describes it, to route by the body's `model`, or among two replicas."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

from sparkwright.domain.codec import to_json
from sparkwright.domain.recipe import GatewayTls
from sparkwright.engines.tables import routes
from sparkwright.gateway.caddy import GatewayConfig, config
from sparkwright.gateway.keys import FrontSetting, Key, Keys, RouteSetting, digest, text_of

KEY = "sk-sw-" + "1f" * 24
CADDY = str(Path(sys.executable).parent / "caddy")
"""The one of the environment that runs this, as `up` installs it."""
SERVICE = (
    "import sys, pathlib; from sparkwright.supervisor.proxy.gateway import main; "
    "sys.exit(main(pathlib.Path(sys.argv[1])))"
)
HAPROXY = """
global
  maxconn 2000
  tune.bufsize 1048576
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 3s
frontend f
  bind 127.0.0.1:{port}
  option http-buffer-request
  option http-no-delay
  http-request set-var(txn.model) req.body,json_query('$.model')
  use_backend alpha if {{ var(txn.model) -m str alpha }}
backend alpha
  server s 127.0.0.1:{engine}
"""
NGINX = """
load_module /usr/lib/nginx/modules/ngx_http_js_module.so;
daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; js_import m from {folder}/m.js;
  client_body_buffer_size 1m; client_max_body_size 64m;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port};
    location / {{ js_content m.route; }}
    location @alpha {{ proxy_pass http://127.0.0.1:{engine}; proxy_buffering off; proxy_http_version 1.1; }}
  }}
}}
"""
NJS = "export default { route: (r) => r.internalRedirect('@' + JSON.parse(r.requestText).model) };"
ASGI = """
import sys, httpx, json, uvicorn
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route
client = httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=None, max_keepalive_connections=0))
async def passed(request):
    body = await request.body()
    at = {"alpha": sys.argv[2]}[json.loads(body)["model"]]
    asked = client.build_request("POST", f"http://127.0.0.1:{at}/v1/chat/completions", content=body)
    answer = await client.send(asked, stream=True)
    return StreamingResponse(answer.aiter_raw(), answer.status_code, {"content-type": answer.headers["content-type"]})
app = Starlette(routes=[Route("/v1/chat/completions", passed, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[1]), log_level="error")
"""


@dataclass
class RoutingCandidate:
    """socket: in place of the port."""

    name: str
    port: int = 0
    socket: str = ""
    key: str = KEY
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def candidates(folder: Path, engine: int, replica: int) -> list[RoutingCandidate]:
    """replica: port of a second engine, for those that choose between the two."""
    found = [start_caddy(folder, engine), *start_ours(folder, engine), *start_ours(folder / "two", engine, replica)]
    for make in (haproxy, start_nginx, start_asgi):
        made = make(folder, engine)
        found += [made] if made else []
    for program in ("sglang-router", "vllm-router"):
        for engines in ((engine,), (engine, replica)):
            made = rust_router(program, folder, *engines)
            found += [made] if made else []
    return [one for one in found if listens(one)]


def listens(candidate: RoutingCandidate) -> bool:
    """True if it does within 20 s. One that does not (a package of it may be missing) is ended."""
    until = time.monotonic() + 20
    family, at = (socket.AF_UNIX, candidate.socket) if candidate.socket else (socket.AF_INET, ("", candidate.port))
    while time.monotonic() < until and all(process.poll() is None for process in candidate.processes):
        with socket.socket(family) as link:
            if link.connect_ex(at) == 0:
                time.sleep(1)
                return True
        time.sleep(0.1)
    print(f"left out: {candidate.name} does not listen", flush=True)
    for process in candidate.processes:
        process.kill()
        process.wait()
    return False


def started(name: str, port: int, argv: list[str], folder: Path) -> RoutingCandidate:
    with (folder / f"{name.split()[0]}.log").open("wb") as log:
        return RoutingCandidate(name, port, processes=[subprocess.Popen(argv, cwd=folder, stdout=log, stderr=log)])


def start_caddy(folder: Path, engine: int) -> RoutingCandidate:
    port = free_port()
    to = {"handler": "reverse_proxy", "upstreams": [{"dial": f"127.0.0.1:{engine}"}]}
    server = {"listen": [f"127.0.0.1:{port}"], "automatic_https": {"disable": True}, "routes": [{"handle": [to]}]}
    whole = {"admin": {"disabled": True}, "apps": {"http": {"servers": {"one": server}}}}
    (folder / "alone.json").write_text(json.dumps(whole))
    return started("Caddy alone, without keys and routing", port, [CADDY, "run", "--config", "alone.json"], folder)


def start_ours(folder: Path, *engines: int) -> list[RoutingCandidate]:
    """The process alone, and with Caddy before it as `up` sets it up (without TLS, which all would have alike)."""
    home, port = folder / "supervision/_gateway", free_port()
    (home / "door").mkdir(parents=True)
    calls, of = routes("vllm").calls, "alpha" if len(engines) > 1 else ""
    for number, engine in enumerate(engines, 1):
        setting = RouteSetting(
            f"alpha-r{number}", f"127.0.0.1:{engine}", 1 << 26, port, models=("alpha",), routes=calls
        )
        (route := folder / f"supervision/alpha-r{number}/door").mkdir(parents=True)
        (route / "door.json").write_text(to_json(replace(setting, replica_of=of)))
    (home / "door" / "gateway.json").write_text(to_json(FrontSetting(port, str(folder / "keys.json"), free_port())))
    (folder / "keys.json").write_text(text_of(Keys((Key("k", digest(KEY)),))))
    front = GatewayConfig(("127.0.0.1",), port, str(folder / "ca"), GatewayTls.OFF)
    (home / "door" / "caddy.json").write_text(json.dumps(config(front)))
    more = f", {len(engines)} replicas" if of else ""
    alone = started(f"our process alone{more}", 0, [sys.executable, "-c", SERVICE, str(home)], folder)
    alone.socket = str(home / "door" / "service.sock")
    argv = [CADDY, "run", "--config", "caddy.json"]
    return [alone, started(f"Caddy and our process{more}", port, argv, home / "door")]


def haproxy(folder: Path, engine: int) -> RoutingCandidate | None:
    program = shutil.which("haproxy", path="/usr/sbin:/usr/bin:" + os.environ["PATH"])
    if not program:
        return None
    (folder / "haproxy.cfg").write_text(HAPROXY.format(port=(port := free_port()), engine=engine))
    return started("HAProxy 2.6, json_query on the buffered body", port, [program, "-f", "haproxy.cfg"], folder)


def start_nginx(folder: Path, engine: int) -> RoutingCandidate | None:
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    if not program or not Path("/usr/lib/nginx/modules/ngx_http_js_module.so").exists():
        return None
    (folder / "m.js").write_text(NJS)
    (folder / "nginx.conf").write_text(NGINX.format(port=(port := free_port()), engine=engine, folder=folder))
    return started("nginx 1.22 with njs", port, [program, "-c", str(folder / "nginx.conf")], folder)


def start_asgi(folder: Path, engine: int) -> RoutingCandidate | None:
    if find_spec("httpx") is None:
        return None
    (folder / "asgi.py").write_text(ASGI)
    return started(
        "ASGI: starlette and httpx", (port := free_port()), [sys.executable, "asgi.py", str(port), str(engine)], folder
    )


def rust_router(name: str, folder: Path, *engines: int) -> RoutingCandidate | None:
    """sglang-router or vLLM's router with its policy that knows prompts. Found in a virtual environment of their own,
    whose folder is in ROUTERS."""
    program = shutil.which(name, path=f"{os.environ.get('ROUTERS', '/tmp/routers')}/bin:{os.environ['PATH']}")
    if not program:
        return None
    argv = [program, *(["launch"] if name == "sglang-router" else []), "--policy", "cache_aware", "--worker-urls"]
    argv += [f"http://127.0.0.1:{engine}" for engine in engines]
    port = free_port()
    argv += ["--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(free_port())]
    more = f", {len(engines)} replicas" if len(engines) > 1 else ""
    return started(f"{name}{more}", port, argv, folder)

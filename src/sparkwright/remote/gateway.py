"""The gateway's files on the head node: what is there, keys swapped in, a running Caddy reloaded."""

from collections.abc import Iterable, Sequence

from sparkwright.domain.command import Command
from sparkwright.domain.values import replace
from sparkwright.remote.host import filled, script, script_texts
from sparkwright.remote.programs import program

_sh = script_texts(__name__)

IMAGE = "caddy:2"
CHANGED = 75
"""Exit code of `swap_keys` when somebody else has written the file meanwhile."""
NO_FIGURES = "no figures"
"""On stderr of `settled`: somebody else has their port."""
_SOON = 14 * 24 * 3600

_ADMIN = """
import http.client, json, os, socket, ssl, sys, time
class Link(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX); self.sock.settimeout(20); self.sock.connect("admin.sock")
def load(**more):
    link, headers = Link("localhost"), {"Content-Type": "application/json", "Host": "", **more}
    link.request("POST", "/load", open("caddy.json", "rb").read(), headers)
    answer = link.getresponse()
    return answer.status, answer.read().decode()
"""
_RELOAD = (
    _ADMIN
    + """
try:
    status, text = load()
except OSError as error:
    print("not running:", error); sys.exit(0)
print(text); sys.exit(status != 200)
"""
)
# Caddy makes a certificate for each name in the background, once it listens: only a handshake shows that it is there.
# What fails it tries again after a minute (2.6.2); a configuration that is loaded again makes it try at once.
_SETTLED = (
    _ADMIN
    + """
port, root = int(sys.argv[1]), sys.argv[2]
apps = json.load(open("caddy.json"))["apps"]
policies = apps.get("tls", {}).get("automation", {}).get("policies", [])
names = [name for policy in policies for name in policy["subjects"] if ":" not in name and not name[-1:].isdigit()]
left, insecure = [*names, None], ssl._create_unverified_context()
def answers():
    while left:
        with socket.create_connection(("127.0.0.1", port), 5) as link:
            if "tls" in apps: insecure.wrap_socket(link, server_hostname=left[0]).close()
        left.pop(0)
    with socket.socket(socket.AF_UNIX) as link: link.connect("service.sock")
def programs():
    # Those of the gateway run in its folder, in sessions of their own
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink("/proc/%s/cwd" % pid) == os.getcwd() and os.getsid(int(pid)) != os.getsid(0): found.add(pid)
        except OSError: pass
    return found
def owners(port):
    # Processes that listen at this port, as far as they are this user's; None if nobody listens
    inodes = set()
    for name in ("tcp", "tcp6"):
        try: rows = [line.split() for line in open("/proc/net/" + name)][1:]
        except OSError: continue
        ours = (row[9] for row in rows if row[3] == "0A" and row[1].endswith(":%04X" % port))
        inodes |= set(map("socket:[%s]".__mod__, ours))
    if not inodes: return None
    found = set()
    for pid in programs():
        try: files = os.listdir("/proc/%s/fd" % pid)
        except OSError: continue
        for file in files:
            try:
                if os.readlink("/proc/%s/fd/%s" % (pid, file)) in inodes: found.add(pid)
            except OSError: pass
    return found
def figures():
    # A busy node takes its time: wait for an answer while the port is our own program's, and a while if it is nobody's
    own, began = json.load(open(sys.argv[3])), time.monotonic()
    wanted = 'deployment="%s"' % own["deployment"]
    while True:
        has = owners(own["metrics"])
        if has == set(): return False  # another program has the port
        if time.monotonic() - began > (30 if has is None else @PATIENT@ / 2): return False
        try:
            link = http.client.HTTPConnection("127.0.0.1", own["metrics"], timeout=5); link.request("GET", "/metrics")
            if wanted in link.getresponse().read().decode("utf-8", "replace"): return True
        except (OSError, http.client.HTTPException): pass
        time.sleep(0.25)
began, again, first = time.monotonic(), 0, None
while True:
    passed = time.monotonic() - began
    if passed > @USUAL@:
        # On a busy node their first start takes minutes: wait as long as the same ones live
        alive = programs()
        first = alive if first is None else first
        if not alive or alive != first or passed > @PATIENT@: break
    try:
        answers()
        if not figures(): print("@LACK@", file=sys.stderr)
        print(open(root).read() if names and os.path.exists(root) else "", end="")
        sys.exit(0)
    except OSError as error:
        why = error
    if isinstance(why, ssl.SSLError) and time.monotonic() > (again := again or time.monotonic() + 4):
        try: load(**{"Cache-Control": "must-revalidate"})
        except (OSError, http.client.HTTPException) as error: why = error
        again = 0
    time.sleep(0.25)
sys.exit(f"port {port} does not answer after {passed:.0f} s: {why}")
"""
)
_USUAL, _PATIENT = 20, 600


def inspect_gateway(state: str, home: str, port: int, pair: tuple[str, str] = ("", "")) -> Command:
    """Sections that facts/service.py parses. pair: paths of certificate and key, where the recipe names them."""
    return script(_sh("look"), state, home, str(port), IMAGE, *pair, str(_SOON), timeout=20.0)


def folders(state: str, home: str, certificates: Iterable[str]) -> Command:
    """The folders of keys and CA, which outlive the deployment, and the deployment's own; nobody else can enter."""
    return script(_sh("folders"), state, home, *certificates, changes=f"gateway: folders {state}/door and {home}/door")


def behind(home: str, port: int) -> Command:
    """Marks a deployment's folder with the port of its gateway, which stays while there is such a mark."""
    return script(_sh("behind"), home, str(port), changes=f"gateway: {home} is behind port {port}")


def read_trust(state: str, root: str) -> Command:
    """The CA certificate that clients were given, then `other` if that on the disk differs; nothing if none was given.

    root: the CA's own file.
    """
    return script(_sh("trust"), state, root)


def note_trust(state: str, root: str) -> Command:
    """Notes the certificate that clients are given."""
    return script(_sh("give"), state, changes="gateway: note the CA that clients are given", stdin=root.encode())


def contained(name: str, user: str, folders: tuple[str, ...], files: tuple[str, ...]) -> tuple[str, ...]:
    """Caddy's own image in place of a program: same paths, same user, no more rights than its binary asks for.

    One that was killed together with its client is removed first.
    """
    mounts = [f"{path}:{path}" for path in folders] + [f"{path}:{path}:ro" for path in files]
    rights = ["--network=host", f"--user={user}", "--cap-drop=ALL", "--cap-add=NET_BIND_SERVICE"]
    places = ["--workdir", folders[0], *(word for mount in mounts for word in ("--volume", mount))]
    run = ["docker", "run", "--rm", "--pull=never", "--name", name, *rights, *places, IMAGE]
    text = 'docker rm --force "$1" >/dev/null 2>&1; shift; exec "$@"'
    return ("/bin/sh", "-c", text, "sparkwright", name, *run, "caddy", "run", "--config", "caddy.json")


def swap_keys(state: str, known: str, content: str, why: str) -> Command:
    """Writes the keys file if it still is the one whose sha256 is `known` ('' for none); else exit CHANGED."""
    return script(_sh("swap"), state, known, changes=f"gateway: {why}", stdin=content.encode())


def read_usage(state: str, since: str, most: int) -> Command:
    """JSON rows of what keys used since that day; [] where nothing was counted yet."""
    return script(_sh("usage"), state, since, str(most), timeout=20.0)


def reload(python: str, folder: str) -> Command:
    """A running Caddy takes over caddy.json without cutting a connection; exit 0 when none runs."""
    text = 'cd "$1" && exec "$2" -I -c "$3"'
    return script(text, folder, python, _RELOAD, changes="gateway: Caddy takes over its new configuration")


def certificates(store: str, door: str, renew: bool) -> Command:
    """Damaged files of the CA in `store` removed or restored, as programs/certificates.py prints it.

    renew: a CA that cannot be restored is moved away if no Caddy runs in `door`.
    """
    made = program(("certificates",), ("renew" if renew else "mend", store, door), 30.0)
    return replace(made, changes=f"gateway: damaged certificates in {store} are made again")


def settled(python: str, folder: str, port: int, root: str, route: str) -> Command:
    """Waits until the gateway answers by each of its names, and shows the figures of the deployment with this `route`.

    Prints `root`, the CA's certificate, where it is in use.
    """
    text = 'cd "$1" && exec "$2" -I -c "$3" "$4" "$5" "$6"'
    program = filled(_SETTLED, LACK=NO_FIGURES, USUAL=str(_USUAL), PATIENT=str(_PATIENT))
    return script(text, folder, python, program, str(port), root, route, timeout=_PATIENT + 40.0)


def programs(home: str, deployment: str, names: Sequence[str]) -> Command:
    """`NAME PID` of each of these services that runs, by its unit or as a detached one."""
    return script(_sh("programs"), home, deployment, *names)

"""The cost of the supervisor itself: memory and processor time of its processes on the head, while a drill runs."""

import threading
import time

from drills.ground import DrillGround

MB_LIMIT, SHARE_LIMIT = 80.0, 0.01
HELPERS = "helpers"
LOOK = """
import glob, os, sys
home, tick, page = sys.argv[1], os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
unit, found = "sparkwright-supervisor-" + os.path.basename(home), {}

def add(name, pages, ticks):
    size, time = found.get(name, (0.0, 0.0))
    found[name] = size + pages * page / 1e6, time + ticks / tick

for folder in glob.glob("/proc/[0-9]*"):
    try:
        argv = open(folder + "/cmdline", "rb").read().decode().split("\\0")
        u, s, cu, cs = map(int, open(folder + "/stat").read().rpartition(")")[2].split()[11:15])
        pages = int(open(folder + "/statm").read().split()[1])
        if "--home" in argv and home in argv and "python" in os.path.basename(argv[0]):
            add(argv[argv.index("--home") - 1], pages, u + s)
            add("helpers", 0, cu + cs)
        elif unit in open(folder + "/cgroup").read():
            add("helpers", pages, u + s + cu + cs)
    except (OSError, ValueError):
        pass
for name, (size, time) in found.items():
    print(name, size, time)
"""


class Footprint:
    """A context: looks every few seconds."""

    def __init__(self, ground: DrillGround, every: float = 5.0) -> None:
        self._ground = ground
        self._every = every
        self._looks: list[tuple[float, dict[str, tuple[float, float]]]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> "Footprint":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    def _follow(self) -> None:
        while True:
            self._look()
            if self._over.wait(self._every):
                return

    def _look(self) -> None:
        done = self._ground.head.exec(["python3", "-c", LOOK, self._ground.home], check=False)
        rows = [line.split() for line in done.stdout.splitlines()]
        self._looks.append((time.monotonic(), {verb: (float(mb), float(cpu)) for verb, mb, cpu in rows}))

    def summary(self) -> dict[str, str]:
        return summary(self._looks)


def summary(looks: list[tuple[float, dict[str, tuple[float, float]]]]) -> dict[str, str]:
    """Most memory and mean share of a core, by process: run, the supervisor; gateway, the service behind Caddy.

    helpers: its ssh sessions and what samples the head's node, of which no target is asked.
    """
    (began, first), (ended, last) = looks[0], looks[-1]
    found = {}
    for verb in sorted(set(first) & set(last)):
        most = max(look[verb][0] for _, look in looks if verb in look)
        share = (last[verb][1] - first[verb][1]) / max(ended - began, 1e-9)
        verdict = "within" if most < MB_LIMIT and share < SHARE_LIMIT else "over"
        limits = "" if verb == HELPERS else f": {verdict} {MB_LIMIT:.0f} MB and {SHARE_LIMIT:.0%} of a core"
        found[verb] = f"{most:.1f} MB, {share:.2%} of a core over {ended - began:.0f} s{limits}"
    return found or {"supervisor": "no process of it was found"}

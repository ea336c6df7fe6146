"""`make drills`: real faults on the two-node testbed, measured. Writes build/drills.json, and of all docs/drills.md.

python -m drills [--quick] [--only WORDS]   (with tests/ on the path)
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

from drills.all import run_all
from drills.figures import Row
from drills.plan import FULL, QUICK
from drills.table import page, text, tree
from testbed import Testbed
from testbed.settings import REPOSITORY


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="drills", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the quick half, as `make test` runs it")
    parser.add_argument("--only", default="", help="drills whose name holds these words")
    chosen = parser.parse_args(words)
    testbed = Testbed.ensure()
    try:
        with tempfile.TemporaryDirectory(prefix="drills-") as folder:
            ran = run_all(testbed, Path(folder), QUICK if chosen.quick else FULL, chosen.only, say)
    finally:
        testbed.close()
    print(text(ran.rows))
    write(ran.rows, conditions(ran.start), ran.footprint, whole=not (chosen.quick or chosen.only))
    return int(not all(one.passed for one in ran.rows))


def say(words: str) -> None:
    print(f"drills: {words}", file=sys.stderr, flush=True)


def conditions(start: float) -> dict[str, object]:
    load = round(os.getloadavg()[2], 1)  # of a quarter of an hour: about as long as the drills take
    return {"cpus": os.cpu_count(), "load": load, "python": platform.python_version(), "start": round(start, 2)}


def write(rows: list[Row], here: dict[str, object], footprint: dict[str, str], whole: bool) -> None:
    """The page only of all drills: of a part it would say less than the one that is there."""
    (REPOSITORY / "build").mkdir(exist_ok=True)
    (REPOSITORY / "build/drills.json").write_text(json.dumps(tree(rows, here, footprint), indent=2) + "\n")
    if whole:
        (REPOSITORY / "docs/drills.md").write_text(page(rows, here, footprint))


sys.exit(main(sys.argv[1:]))

"""`make drills`: real faults on the two-node testbed, measured. Saves each result and writes docs/reference/drills.md.

python -m drills [--quick | --outages] [--only WORDS,...] [--resume] [--page]   (with tests/ and tools/ on the path)
"""

import argparse
import sys
import tempfile
from pathlib import Path

from drills import results
from drills.all import DrillRun
from drills.eighth_plan import EIGHTH
from drills.fifth_plan import FIFTH
from drills.fourth_plan import FOURTH
from drills.fresh_plan import FRESH
from drills.memory_plan import MEMORY
from drills.outage_plan import OUTAGES
from drills.plan import FULL, QUICK, DrillStage, stage_names
from drills.seventh_plan import SEVENTH
from drills.table import results_page, results_text
from drills.third_plan import THIRD
from drills.trial_plan import TRIAL
from testbed import Testbed
from testbed.settings import REPOSITORY

FILE, LOGS = REPOSITORY / results.FILE, REPOSITORY / results.LOGS


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="drills", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the quick half, as `make test` runs it; keeps nothing")
    parser.add_argument("--only", default="", help="drills whose name holds one of these words, with commas between")
    parser.add_argument("--resume", action="store_true", help="only those without a result that meets its targets")
    parser.add_argument("--outages", action="store_true", help="only those that watch an outage as clients see it")
    parser.add_argument("--page", action="store_true", help="run nothing: write the page of the saved results")
    chosen = parser.parse_args(words)
    stages = (
        QUICK
        if chosen.quick
        else (*OUTAGES, *TRIAL, *FRESH, *THIRD, *FOURTH, *FIFTH, *SEVENTH, *EIGHTH, *MEMORY)
        if chosen.outages
        else FULL
    )
    found = [] if chosen.page else measure(stages, wanted(chosen.only, chosen.resume), keep=not chosen.quick)
    if not chosen.quick:
        found = results.load(FILE, stage_names(FULL))
        (REPOSITORY / "docs/reference/drills.md").write_text(results_page(found, stage_names(FULL)))
    print(results_text(found))
    return int(not all(one.row.passed for one in found))


def wanted(only: str, resume: bool) -> set[str]:
    passed = {one.row.name for one in results.load(FILE, stage_names(FULL)) if one.row.passed} if resume else set()
    return {name for name in stage_names(FULL) if any(word in name for word in only.split(","))} - passed


def measure(stages: tuple[DrillStage, ...], names: set[str], keep: bool) -> list[results.DrillResult]:
    testbed, found = Testbed.ensure(), list[results.DrillResult]()
    try:
        with tempfile.TemporaryDirectory(prefix="drills-") as folder:
            for one in DrillRun(testbed, Path(folder), print_log, names.__contains__).of(stages):
                found.append(one)
                if keep:
                    results.save(FILE, LOGS, one)
    finally:
        testbed.close()
    return found


def print_log(text: str) -> None:
    print(f"drills: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

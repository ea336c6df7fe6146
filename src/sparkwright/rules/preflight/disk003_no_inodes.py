"""A file system with models has hardly any inodes left.

Detects: less than 5 % of the inodes are free, where the file system counts any.
Why: nothing can be written although `df` shows room: `No space left on device`. Package caches and compile caches of
  many small files do it.
Evidence: inodes free and in all.
Remedy: find the folder with the many files and empty it.
References: https://man7.org/linux/man-pages/man1/df.1.html (df -i)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, simulated
from sparkwright.rules.rule import Context

CODE = "DISK003"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a file system has hardly any inodes left"

_SHARE = 0.05


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values() if not simulated(context) else ():
        for store in known(facts.stores) or ():
            if store.inodes and store.inodes_free < store.inodes * _SHARE:
                yield Finding(
                    CODE,
                    SEVERITY,
                    facts.node,
                    f"{store.inodes_free} inodes left below {store.path}",
                    f"stat -f: {store.inodes_free} of {store.inodes} inodes free ({store.fs})",
                    "many small files: package caches, compile caches, old containers",
                    f"df -i; sudo du --inodes -xh --max-depth=3 {store.path} | sort -h | tail",
                )

"""Writes src/sparkwright/logscan/system_errors.json: error texts of the C library, its loader and its resolver in other
languages, with the English.

system_errors.py [--check]. Read from the C library's own catalogues (/usr/share/locale/*/LC_MESSAGES/libc.mo; on Debian
the package libc-l10n has them).
"""

from __future__ import annotations

import errno
import gettext
import json
import os
import sys
from pathlib import Path

CATALOGUES = Path("/usr/share/locale")
LANGUAGES = ("de", "es", "fr", "ja")
OUT = Path(__file__).resolve().parents[2] / "src" / "sparkwright" / "logscan" / "system_errors.json"
SHORTEST = 6  # characters; shorter ones are words of other sentences
SIGNALS = ("Segmentation fault", "Aborted", "Killed", "Bus error", "Illegal instruction", "Floating point exception")
LOADER = (
    "error while loading shared libraries", "cannot open shared object file", "invalid ELF header", "file too short",
    "symbol lookup error", "cannot allocate memory in static TLS block",
)  # fmt: skip
NAMES = ("Name or service not known", "Temporary failure in name resolution", "No address associated with hostname")


def error_texts() -> dict[str, str]:
    """Text in another language -> English."""
    english = [os.strerror(number) for number in sorted(errno.errorcode)]
    found: dict[str, str] = {}
    for language in LANGUAGES:
        with (CATALOGUES / language / "LC_MESSAGES" / "libc.mo").open("rb") as file:
            catalogue = gettext.GNUTranslations(file)
        for text in (*english, *SIGNALS, *LOADER, *NAMES):
            other = catalogue.gettext(text)
            is_phrase = " " in other or not other.isascii()  # a single word may be one of another language
            if other != text and is_phrase and (len(other) >= SHORTEST or not other.isascii()):
                found.setdefault(other, text)
    return dict(sorted(found.items()))


def main(words: list[str]) -> int:
    made = json.dumps(error_texts(), ensure_ascii=False, indent=0) + "\n"
    if "--check" in words:
        return int(OUT.read_text(encoding="utf-8") != made)
    OUT.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

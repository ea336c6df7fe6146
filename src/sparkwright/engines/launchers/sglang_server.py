"""SGLang's own server, with its API key kept out of the log: it prints all its arguments, the key with them.

    sglang_server.py --config KEY.yaml ...SGLang's options...

KEY.yaml is JSON, which is YAML: {"api-key": "..."}. SGLang spawns its schedulers from this file (multiprocessing's
spawn), so what is at the top holds in them, too. It is self-contained: Python >= 3.10, nothing but its library.
"""

from __future__ import annotations

import json
import logging
import runpy
import sys
from pathlib import Path
from typing import Any

MASK = "***"


def read_key(argv: list[str]) -> str:
    """The key in the file that --config names; '' without one."""
    if "--config" not in argv:
        return ""
    return str(json.loads(Path(argv[argv.index("--config") + 1]).read_text(encoding="utf-8")).get("api-key", ""))


def hide_secret(secret: str) -> None:
    """Hides the secret in every log record of this process from here on."""
    make = logging.getLogRecordFactory()

    def masked(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        try:
            text = record.getMessage()
        except Exception:
            # Logging would tell of the mistake, with all arguments, and go on: so must the server, without them.
            text = f"{record.msg} (its arguments do not fit)"
            record.msg, record.args = text, None
        if secret in text:
            record.msg, record.args = text.replace(secret, MASK), None
        return record

    logging.setLogRecordFactory(masked)


if secret := read_key(sys.argv):
    hide_secret(secret)

if __name__ == "__main__":
    # __main__ stays this file: spawned children read it, not SGLang's module.
    runpy.run_module("sglang.launch_server", run_name="__main__")

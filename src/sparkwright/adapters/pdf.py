"""HTML to PDF by the user's own Chromium, headless and without network."""

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from sparkwright.domain.errors import UsageError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_SECONDS = 120.0
_OPTIONS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--no-pdf-header-footer",
)


def browser() -> str:
    """Path of an installed Chromium. Raises UsageError without one."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        hint = "install chromium, or write HTML and print it: -o FILE.html"
        raise UsageError(f"a PDF needs Chromium, and none is installed (looked for {', '.join(BROWSERS)})", hint)
    return found


def print_pdf(page: str) -> bytes:
    """The page as a PDF. Raises UsageError without Chromium, or when it gives no PDF within two minutes."""
    program = browser()
    # Chromium makes a socket in its temporary folder and crashes where the name is longer than 107 bytes.
    short = "/tmp" if os.access("/tmp", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="sparkwright-", dir=short, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        source, target = folder / "page.html", folder / "page.pdf"
        source.write_text(page, encoding="utf-8")
        root = ("--no-sandbox",) if os.geteuid() == 0 else ()  # as root Chromium does not start with it
        own = (f"--user-data-dir={folder / 'profile'}", f"--print-to-pdf={target}")
        command = (program, *_OPTIONS, *root, *own, source.as_uri())
        code = _finished(command, folder)
        content = target.read_bytes() if target.is_file() else b""
        if not content.startswith(b"%PDF-"):
            said = (folder / "said").read_text(errors="replace").strip().splitlines()
            raise UsageError(f"{program} made no PDF: {said[-1][:200] if said else f'exit code {code}'}", _HINT)
        return content


def _finished(command: tuple[str, ...], folder: Path) -> int:
    """Exit code of the browser. Its helpers are ended with it: they keep pipes open. Raises UsageError."""
    with (folder / "said").open("wb") as said:
        try:
            browsing = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=_environment(folder),
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(f"{command[0]} cannot be started: {error.strerror}", _HINT) from None
    try:
        return browsing.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        raise UsageError(f"{command[0]} made no PDF within {_SECONDS:g} s", _HINT) from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(browsing.pid, signal.SIGKILL)
        browsing.wait()


_HINT = "write HTML and print it: -o FILE.html"


def _environment(folder: Path) -> dict[str, str]:
    """Chromium keeps nothing in the user's home."""
    keep = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    return {**keep, "HOME": str(folder), "TMPDIR": str(folder)}

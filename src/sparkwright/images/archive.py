"""The build's files as the tar that `docker build -` reads."""

import io
import tarfile
from collections.abc import Mapping


def archive(files: Mapping[str, str]) -> bytes:
    """The same bytes for the same files: no times, no owners."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, text in files.items():
            entry, content = tarfile.TarInfo(name), text.encode()
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()

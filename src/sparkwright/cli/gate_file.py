"""Files of gates, as `bench`, `compare` and `gate` read them: before anything else is done."""

from pathlib import Path

from sparkwright.domain.errors import UsageError
from sparkwright.loadgen.gate_lines import Gate, parse


def read_gates(file: Path) -> tuple[Gate, ...]:
    """Raises UsageError with every bad line."""
    try:
        return parse(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {getattr(error, 'strerror', None) or 'no text'}") from None


def gates_of(file: Path | None, baseline: str) -> tuple[Gate, ...]:
    """The gates of a benchmark, read first so that nobody waits in vain. Raises UsageError."""
    if file is None:
        if baseline:
            raise UsageError("--baseline needs --gate: it is what `x baseline` in FILE refers to", "add --gate FILE")
        return ()
    gates = read_gates(file)
    if not baseline and (lines := [gate.line for gate in gates if gate.of_baseline]):
        raise UsageError(f"{file}: `{lines[0]}` wants a baseline", "--baseline RUN names it: an id, a tag, or last")
    return gates

"""The GPU's clocks under a load of ten seconds, or under what runs there anyway."""

from sparkwright.domain.command import Command
from sparkwright.remote.host import script

SECONDS = 10
# Half a GB and no kernel that has to be compiled: a product of two square matrices, again and again.
_MULTIPLY = """
import sys, time, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
torch.mm(a, a); torch.cuda.synchronize(); print("started", flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for _ in range(20):
        torch.mm(a, a)
    torch.cuda.synchronize()
"""
_CLOCKS = r"""
sample() { LC_ALL=C nvidia-smi --query-gpu=clocks.sm,power.draw,utilization.gpu --format=csv,noheader; }
samples() { printf '@@ samples\n'; i=0; while [ $i -lt "$2" ]; do sleep 1; sample; i=$((i + 1)); done; }
command -v nvidia-smi >/dev/null 2>&1 || { printf '@@ skipped\nnvidia-smi is not installed\n'; exit 0; }
if [ "$5" = busy ]; then printf '@@ load\nwhat runs there\n'; samples x "$2"; exit 0; fi
if python3 -c 'import torch; assert torch.cuda.is_available()' >/dev/null 2>&1; then
  printf '@@ load\ntorch on the node\n'; set -- "$1" "$2" "$3" "$4" host
elif [ -n "$3" ]; then printf '@@ load\ntorch in %s\n' "$3"
else printf '@@ skipped\nno torch on the node, and no image with an engine\n'; exit 0; fi
log=$(mktemp) || exit 1
trap 'kill "$p" 2>/dev/null && wait "$p" 2>/dev/null; rm -f "$log"' EXIT; trap 'exit 1' HUP INT TERM
long=$(($2 + 6))
if [ "$5" = host ]; then python3 -c "$1" "$long" >"$log" 2>&1 & p=$!
else docker run --rm --init --name "$4" --gpus all --network none --pull never --entrypoint python3 \
  "$3" -c "$1" "$long" >"$log" 2>&1 & p=$!; fi
i=0
while ! grep -q '^started' "$log"; do
  kill -0 "$p" 2>/dev/null && [ $i -lt 600 ] || { printf '@@ skipped\n'; tail -n 1 "$log"; exit 0; }
  sleep 0.1; i=$((i + 1))
done
samples x "$2"
"""


def clocks(image: str, name: str, busy: bool) -> Command:
    """Sections `load` (what makes it) and `samples` (a row a second), or `skipped` with why.

    image: one to take torch from where the node has none, '' for none; name: of its container. busy: make no load.
    """
    how = "busy" if busy else ""
    changes = "" if busy else "clock test: the GPU under load for ten seconds"
    return script(_CLOCKS, _MULTIPLY, str(SECONDS), image, name, how, timeout=SECONDS + 90.0, changes=changes)


def end(name: str) -> Command:
    """Nothing of the load stays: its container is removed, if it is still there."""
    return script('docker rm -f "$1" >/dev/null 2>&1; exit 0', name, timeout=20.0)

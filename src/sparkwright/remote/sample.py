"""A node as it is read again and again while it serves: one sh that lives as long as somebody listens.

Its answer is lines. `gpu ...`, `pids ...`, `kernel ...` come whenever there are any, `NAME! why` when they never will;
a block from `@@ sample` to `@@ end` comes every few seconds. A block costs five short processes, so that a node spends
about a thousandth of a core; nvidia-smi stays open (`-l`), because starting it costs more than everything else.
"""

from sparkwright.domain.command import Command
from sparkwright.remote.host import SHOW, script
from sparkwright.remote.kernel import WORTH

GPU_FIELDS = ("utilization.gpu", "utilization.memory", "power.draw", "clocks.sm", "temperature.gpu")
PIDS_EVERY = 60.0
# The marker of a start: the boot id alone stays the same when a system container is started again.
# Looking for compilers opens a file of every process, so it is done for each fourth block.
_BLOCK = r"""
boot=; read -r boot 2>/dev/null <"$(at /proc/sys/kernel/random/boot_id)"
start=$(sed 's/.*) //' "$(at /proc/1/stat)" 2>/dev/null | cut -d' ' -f20)
n=0; c=0; w=
compilers() { [ -n "$R" ] || { set -- $(grep -sxhE 'ptxas|cicc|nvcc|ninja|cc1plus' /proc/[0-9]*/comm); c=$#; }; }
block() {
  printf '@@ sample\ntime %s\nboot %s:%s\n' "$(date +%s.%N)" "$boot" "$start"
  LC_ALL=C grep -shE '^([A-Z][A-Za-z_()0-9]*: |(pswpin|pswpout|oom_kill|some|full) )' "$R/proc/meminfo" \
    "$R/proc/vmstat" "$R/proc/pressure/memory"
  cd "$R/sys/class/infiniband" 2>/dev/null && { LC_ALL=C grep -sH . */ports/*/counters/port_xmit_data \
    */ports/*/counters/port_rcv_data; cd /; }
  [ $((n % 4)) -ne 0 ] || compilers; n=$((n+1))
  [ -z "$w" ] || printf 'disk %s\n' "$(stat -f -c '%a %S' "$w" 2>/dev/null)"
  printf 'compilers %s\n@@ end\n' "$c"
}
"""
_WHERE = 'w=$(x "$5")\n'
_ASK = r"""
smi() { LC_ALL=C nvidia-smi -i 0 --query-gpu=@FIELDS@ --format=csv,noheader "$@" 2>&1 |
  while IFS= read -r l; do printf 'gpu %.200s\n' "$l"; done; }
pids() { p=$(LC_ALL=C timeout 20 nvidia-smi --query-compute-apps=pid --format=csv,noheader 2>&1) && printf 'pids %s\n' \
  "$(printf %s "$p" | tr '\n' ' ')"; }
has_gpu() { command -v nvidia-smi >/dev/null 2>&1 || { echo 'gpu! nvidia-smi is not installed'; return 1; }; }
""".replace("@FIELDS@", ",".join(GPU_FIELDS))
# A driver that does not answer blocks nvidia-smi for minutes (field guide E5): it must never hold up the blocks.
# nvidia-smi that ends (no driver yet, a fault) is asked again.
_GPU = r"""
gpu() { has_gpu || return; while :; do smi -l "$1"; sleep "$1"; done; }
pids_now_and_then() { while command -v nvidia-smi >/dev/null 2>&1; do pids; sleep "$1"; done; }
"""
# Only what any rule looks for leaves the node (remote/kernel.py), never the kernel's command line. As another user
# dmesg can only be ended by itself, so sudo's runs for ten minutes and begins anew. After a hundred lines a pause: a
# driver that writes without end must not fill the line.
_KERNEL = r"""
told() { LC_ALL=C grep --line-buffered -E '@WORTH@' | { n=0; while IFS= read -r l; do
  case $l in *'ommand line: '*) continue ;; esac
  printf 'kernel %.400s\n' "$l"; n=$((n+1)); [ $((n % 100)) -ne 0 ] || sleep 1; done; }; }
kernel() {
  if [ -n "$R" ]; then tail -n 0 -F "$R/var/log/dmesg" 2>/dev/null | told
  elif [ -n "$(timeout 4 journalctl -k -q -n 1 2>/dev/null)" ]; then
    if [ "$1" != 0 ]; then journalctl -k -q -f -o short-iso -n 1000 --since "@$1" 2>/dev/null | told
    else journalctl -k -q -f -o short-iso -n 0 2>/dev/null | told; fi
  elif dmesg >/dev/null 2>&1; then dmesg -W --time-format iso 2>/dev/null | told
  elif sudo -n dmesg >/dev/null 2>&1; then
    while :; do sudo -n timeout 600 dmesg -W --time-format iso 2>/dev/null | told; sleep 1; done
  else echo 'kernel! this user may read neither the journal nor dmesg'; fi
}
"""
# Children of the three background shells are ended by name: a `journalctl -f` would notice only with its next line.
_FOLLOW = r"""
ends() { trap - EXIT; for p in $g $k $q; do c=; read -r c <"/proc/$p/task/$p/children"; kill $c "$p"; done; kill "$s"; }
g=; k=; q=; s=
trap 'ends 2>/dev/null' EXIT; trap 'exit 0' HUP INT TERM PIPE
gpu "$2" & g=$!
pids_now_and_then "$4" & q=$!
kernel "$3" & k=$!
while block; do sleep "$1" & s=$!; wait "$s"; done
"""


def follow(every: float, gpu_every: float = 5.0, since: float = 0.0, folder: str = "") -> Command:
    """Blocks every so many seconds, without end. gpu_every: whole seconds, at least 1.

    since: kernel lines from that time on (seconds since the epoch), where the journal can be read; 0: only new ones.
    folder: whose file system's free space is read, too.
    """
    text = SHOW + _BLOCK + _WHERE + _ASK + _GPU + _KERNEL.replace("@WORTH@", "|".join(WORTH)) + _FOLLOW
    words = (f"{every:g}", f"{max(1, round(gpu_every))}", f"{since:.0f}", f"{PIDS_EVERY:g}", folder)
    return script(text, *words)


def memory() -> Command:
    """One block without the GPU: a driver that does not answer must not hold up who only asks for memory and boot."""
    return script(SHOW + _BLOCK + "\nblock\n", timeout=10.0)

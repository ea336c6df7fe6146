"""Small settings that `check --fix` sets on a node, each with its probe and its rollback."""

import shlex
from collections.abc import Sequence
from dataclasses import replace

from sparkwright.domain.command import Command
from sparkwright.domain.finding import Fix
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)

_AS_ROOT = 'as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi; }\n'


def may_repair() -> Command:
    """Exit 0 when the user may do it without a password, and there is a systemd that can."""
    text = "command -v systemctl >/dev/null && [ -d /run/systemd/system ] && as_root systemctl --version >/dev/null"
    return script(_AS_ROOT + text, timeout=10.0)


def reboot() -> Command:
    return script(_AS_ROOT + "as_root systemctl reboot", timeout=30.0, changes="reboot the node")


def drop_caches() -> Command:
    """Drops the caches of the whole node, and compacts its free memory. Exit 0 only if the user may without a
    password."""
    text = "sync; as_root sh -c 'echo 3 >/proc/sys/vm/drop_caches && echo 1 >/proc/sys/vm/compact_memory'"
    return script(_AS_ROOT + text, timeout=120.0, changes="drop the page cache and compact free memory")


_MTU = r"""LC_ALL=C ip -o link show dev "$1" | sed -n 's/.* mtu \([0-9]*\).*/\1/p'"""


def mtu_fix(node: str, interface: str, mtu: int, before: int) -> Fix:
    says = f"{interface}: MTU {before} -> {mtu}, until the next boot (netplan keeps it)"
    do, undo = set_mtu(interface, mtu), set_mtu(interface, before)
    return Fix(node, says, (do,), (undo,), script(_MTU, interface), str(mtu))


def mode_fix(node: str, path: str, mode: str, before: str) -> Fix:
    look = script('exec stat -c %a -- "$R$1"', path)
    return Fix(node, f"{path}: mode {before} -> {mode}", (set_mode(path, mode),), (set_mode(path, before),), look, mode)


def ref_fix(node: str, store: str, entry: str, text: str) -> Fix:
    """The text without the blanks around it. The look counts bytes first: what differs may be a newline."""
    bare = text.strip()
    do, undo = (write_ref(store, entry, one) for one in (bare, text))
    look = script('f="$(x "$1")/$2/refs/main"; wc -c <"$f"; cat "$f"', store, entry)
    says = f"{store}/{entry}/refs/main: {text!r} -> {bare!r}"
    return Fix(node, says, (do,), (undo,), look, f"{len(bare)}\n{bare}", root=False)


def set_mtu(interface: str, mtu: int) -> Command:
    """Sets the MTU until the next boot: netplan's or NetworkManager's files stay as they are."""
    text = 'exec ip link set dev "$1" mtu "$2"'
    words = f"ip link set dev {interface} mtu {mtu}"
    return replace(script(text, interface, str(mtu), changes=words), typed=f"sudo {words}")


def set_mode(path: str, mode: str) -> Command:
    made = script('exec chmod -- "$1" "$R$2"', mode, path, changes=f"chmod {mode} {path}")
    return replace(made, typed=f"sudo chmod {mode} {shlex.quote(path)}")


def write_ref(store: str, entry: str, text: str) -> Command:
    """refs/main of a hub entry holds exactly this text; `~` in store is the user's home."""
    place = 'printf %s "$3" >"$(x "$1")/$2/refs/main"'
    made = script(place, store, entry, text, changes=f"write {store}/{entry}/refs/main")
    return replace(made, typed=f"printf {shlex.quote(text)} >{store}/{entry}/refs/main".replace("\n", r"\n"))


def sysctl_fix(node: str, name: str, value: int, before: int) -> Fix:
    says = f"{name} = {value} ({before} before), now and at each boot"
    look = script('exec cat "$R/proc/sys/$1"', name.replace(".", "/"))
    return Fix(node, says, (set_sysctl(name, value),), (restore_sysctl(name, before),), look, str(value))


def set_sysctl(name: str, value: int) -> Command:
    """Now and at each boot."""
    made = script(_sh("set"), name, str(value), _slug(name), changes=f"set {name} = {value}, also in /etc/sysctl.d")
    return replace(made, typed=f"sudo sysctl -w {name}={value}\necho '{name} = {value}' | sudo tee {sysctl_file(name)}")


def restore_sysctl(name: str, value: int) -> Command:
    """Back to the value that was found, and the file under /etc/sysctl.d as it was."""
    made = script(_sh("restore"), name, str(value), _slug(name), changes=f"set {name} = {value} as before")
    return replace(made, typed=f"sudo rm {sysctl_file(name)}   # or as it was before\nsudo sysctl -w {name}={value}")


def persistence_fix(node: str) -> Fix:
    says = "GPU persistence mode on (off before), until the next boot"
    look = Command(("nvidia-smi", "--query-gpu=persistence_mode", "--format=csv,noheader"))
    do, undo = (Command(("nvidia-smi", "-pm", how), changes=f"GPU persistence mode {how}") for how in "10")
    return Fix(node, says, (do,), (undo,), look, "Enabled")


CLOCK_UNIT = "sparkwright-gpu-clock.service"
# Weeks without a power-off at 2000 MHz where 2400 MHz had them daily (MiaAI DeepSeek-v4 146); it costs little speed.
CLOCK_CAP = 2000


def clock_fix(node: str, mhz: int = CLOCK_CAP) -> Fix:
    """A cap that lasts over boots, by a unit of systemd; undone, the driver chooses the clock again."""
    says = f"GPU clock at most {mhz} MHz (no cap by sparkwright before), now and at each boot"
    made = script(_sh("clock"), CLOCK_UNIT, str(mhz), timeout=60.0, changes=f"cap the GPU clock at {mhz} MHz")
    gone = script(_sh("no_clock"), CLOCK_UNIT, timeout=60.0, changes="take the cap of the GPU clock back")
    do = replace(made, typed=f"sudo nvidia-smi -lgc 200,{mhz}   # lost at reboot")
    return Fix(node, says, (do,), (gone,), script(_sh("look_clock"), CLOCK_UNIT), f"enabled\nactive\n200,{mhz}")


WATCHDOG_SECONDS = 120


def watchdog_fix(node: str, driver: str = "", seconds: int = WATCHDOG_SECONDS) -> Fix:
    """systemd answers the hardware watchdog; a node that freezes is reset after so many seconds.

    A node that only swaps or loads may be silent for a minute and comes back, so it gets two. driver: the kernel
    module to load at each boot, '' if the device is there without.
    """
    says = f"hardware watchdog armed by systemd: a node that hangs for {seconds} s is reset (off before)"
    do = script(_sh("watchdog"), str(seconds), driver, timeout=60.0, changes=f"arm the hardware watchdog, {seconds} s")
    gone = script(_sh("no_watchdog"), timeout=60.0, changes="leave the hardware watchdog alone again")
    typed = (
        f"printf '[Manager]\\nRuntimeWatchdogSec={seconds}\\n' | sudo tee {WATCHDOG_FILE}\nsudo systemctl daemon-reexec"
    )
    if driver:
        typed = f"sudo modprobe {driver}   # lost at reboot\n{typed}"
    return Fix(node, says, (replace(do, typed=typed),), (gone,), script(_sh("look_watchdog")), f"{seconds}\nactive")


WATCHDOG_FILE = "/etc/systemd/system.conf.d/90-sparkwright-watchdog.conf"


def hold_fix(node: str, packages: Sequence[str]) -> Fix:
    """packages: those that are not held."""
    do = Command(("apt-mark", "hold", *packages), changes=f"hold {' '.join(packages)}")
    undo = Command(("apt-mark", "unhold", *packages), changes=f"unhold {' '.join(packages)}")
    look = script('apt-mark showhold "$@" | LC_ALL=C sort', *packages)
    return Fix(node, f"hold {', '.join(packages)} (not held before)", (do,), (undo,), look, "\n".join(sorted(packages)))


def mask_fix(node: str, units: Sequence[str]) -> Fix:
    """units: those that are not masked."""
    do = Command(("systemctl", "mask", *units), changes=f"mask {' '.join(units)}")
    undo = Command(("systemctl", "unmask", *units), changes=f"unmask {' '.join(units)}")
    look = Command(("systemctl", "is-enabled", *units))
    says = f"mask {', '.join(units)} (not masked before)"
    return Fix(node, says, (do,), (undo,), look, "\n".join("masked" for _ in units))


def ntp_fix(node: str) -> Fix:
    look, switch = Command(("timedatectl", "show", "--property=NTP", "--value")), ("timedatectl", "set-ntp")
    do, undo = (Command((*switch, how), changes=f"time synchronization {how}") for how in ("true", "false"))
    return Fix(node, "time synchronization on (off before)", (do,), (undo,), look, "yes")


def group_fix(node: str, user: str) -> Fix:
    """user: as the node reports it, checked."""
    look = script("""id -nG -- "$1" | tr ' ' '\\n' | grep -cx docker""", user)
    do = Command(("usermod", "-aG", "docker", user), changes=f"{user} joins the group docker")
    undo = Command(("gpasswd", "-d", user, "docker"), changes=f"{user} leaves the group docker")
    says = f"{user} in the group docker, which is as good as root (not in it before)"
    return Fix(node, says, (do,), (undo,), look, "1")


def swap_fix(node: str) -> Fix:
    """Switches swap off now and at each boot: an engine that swaps is slower than one that fails."""
    do = script(_sh("no_swap"), timeout=300.0, changes="swap off and masked")
    undo = script(_sh("swap"), timeout=60.0, changes="swap on as before")
    typed = replace(
        do, typed="sudo systemctl mask --now $(systemctl list-units -t swap --plain --no-legend | cut -d' ' -f1)"
    )
    return Fix(node, "swap off (on before), now and at each boot", (typed,), (undo,), script(_sh("look_swap")), "0")


def _slug(name: str) -> str:
    return name.replace(".", "-").replace("_", "-")


def sysctl_file(name: str) -> str:
    return f"/etc/sysctl.d/90-sparkwright-{_slug(name)}.conf"

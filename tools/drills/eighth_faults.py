"""Faults of an eighth trial: hidden processes, dead loopbacks, odd settings, and programs that lie or wait."""

import subprocess

from drills.fifth_faults import USER_MANAGER
from drills.ground import DrillGround
from drills.spoil import SESSIONS
from drills.trial_faults import HOME
from testbed import ContainerNode

HIDE_OTHERS = "mount -o remount,hidepid={} /proc"
OTHERS_ARE_HIDDEN = "! su spark -c 'ls -d /proc/1' 2>&1"
LOSE_FIRST = "for w in INPUT OUTPUT; do iptables {} $w -p tcp --syn -j DROP; done"
FIRST_ARE_LOST = "iptables -L INPUT -v -n -x | awk '/DROP/ {n += $1} END {print n, \"first packets lost\"; exit !n}'"
ODD = "TZ=Pacific/Chatham LC_ALL=tr_TR.ISO-8859-9 LANG=tr_TR.ISO-8859-9 LANGUAGE=tr PYTHONIOENCODING=iso8859-9"
ODD_SETTINGS = (
    f"su spark -c '{USER_MANAGER} set-environment {ODD}'; printf '%s\\n' {ODD} >>/etc/environment"  # and at each login
)
USUAL_SETTINGS = (
    f"su spark -c '{USER_MANAGER} unset-environment TZ LC_ALL LANG LANGUAGE PYTHONIOENCODING'; : >/etc/environment"
)
SETTINGS_ARE_ODD = (
    f"su spark -c '{USER_MANAGER} show-environment' | grep -e TZ -e LC_ALL; "
    "p=$(pgrep -f '[s]parkwright.*run --home' | head -n 1); "
    "tr '\\0' '\\n' </proc/$p/environ | grep Chatham"
)

NO_INODE = f"mount -o remount,nr_inodes=$(df --output=iused {HOME} | tail -n 1 | tr -d ' ') {HOME}"
INODES_AGAIN = f"mount -o remount,nr_inodes=100000 {HOME}"
INODES_ARE_GONE = f"df --output=itotal,iavail {HOME} | tail -n 1; ! touch {HOME}/probe 2>&1"

LYING_PYTHON = f"printf '#!/bin/sh\\nexit 0\\n' >/usr/local/bin/python3; chmod 755 /usr/local/bin/python3; {SESSIONS}"
PYTHON_AGAIN = "rm -f /usr/local/bin/python3"
PYTHON_LIES = "su spark -c 'python3 -c \"raise SystemExit(7)\"' && echo python3 does nothing and exits with 0"

# What takes the output of the rank to its log does so no longer, and the pipe before it holds one page.
PRINTER = "$(pgrep -f '[p]rinter.sh .*rank0') $(pgrep -x dd)"
ONE_PAGE = "import fcntl, os, sys; fcntl.fcntl(os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK), 1031, 4096)"
STOP_PRINTER = f"python3 -c '{ONE_PAGE}' /proc/$(pgrep -x dd | head -n 1)/fd/0 && kill -STOP {PRINTER}"
START_PRINTER = f"kill -CONT {PRINTER} || :"
PRINTER_IS_STOPPED = (
    "ps -o pid=,stat=,comm= -C dd; for t in /proc/[0-9]*/task/*; do "
    "case $(cat $t/wchan 2>/dev/null) in *pipe_write*) "
    "echo $(cat $t/comm) waits for the pipe; exit 0;; esac; done; exit 1"
)

PAM = "/etc/pam.d/[s]shd"  # SESSIONS must not find its own shell
SLOW_LOGIN = (
    f"cp -p {PAM} /root/pam.kept; printf '#!/bin/sh\\ndate +%%T >>/tmp/slow-logins; sleep 25\\n' >/root/slow-login; "
    f"chmod 755 /root/slow-login; sed -i '1i account required pam_exec.so /root/slow-login' {PAM}; {SESSIONS}"
)
USUAL_LOGIN = f"mv /root/pam.kept {PAM}; rm -f /root/slow-login; pkill -f '^sleep 25' || :"
LOGINS_ARE_SLOW = "echo logins of 25 s: $(cat /tmp/slow-logins); [ -s /tmp/slow-logins ]"

LIMITS = "/etc/security/limits.d/90-theirs.conf"
NO_FORK = "! su spark -c 'sleep 0 & wait' 2>&1"


def limit_tasks(node: ContainerNode) -> None:
    """Gives the user fewer tasks than run at each login; the kernel counts this machine's of the same number."""
    told = subprocess.run(["ps", "-eLo", "ruid="], capture_output=True, text=True, check=True).stdout
    run = told.split().count("1000")
    node.write(LIMITS, f"spark hard nproc {run * 2 // 3}\n")
    node.sh(SESSIONS)


# The state folder is a link to another disk: a bind mount of a folder, so that it is the same one when it is back.
DISK, AT = "/srv/theirs", "/mnt/theirs"
MOUNT = f"mount --bind {DISK} {AT}"
UNMOUNT = f"umount -l {AT}"
UNMOUNTED = f"readlink {HOME}; ls -A {HOME}/ | wc -l; ! mountpoint {AT}"


def link_state(ground: DrillGround) -> None:
    ground.head.sh(
        f"rm -rf {DISK}; mkdir -p {DISK} {AT} && chown spark: {DISK} && {MOUNT} && echo {AT} >>/etc/testbed/mounts && "
        f"rm -rf {HOME} && su spark -c 'mkdir -p $(dirname {HOME}) && ln -s {AT} {HOME}'"
    )

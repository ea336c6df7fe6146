"""A kernel update ended before its initramfs was written.

Detects: boot panics without a root file system, and dpkg's half-configured kernel.
Why: DKMS or the disk failed in the middle of the update; GRUB starts a kernel that has no initramfs. GB10's GRUB
  shows no menu, so another kernel cannot be chosen without a screen.
Evidence: the panic's line; dpkg's message.
Remedy: finish the update from recovery media; set a GRUB timeout before.
References: gb10.md E11
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LDRV019"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "an update stopped half way: no initramfs for the kernel"
CAUSE = "update-left-no-initramfs"
SIGNS = (
    line(r"VFS: Unable to mount root fs on unknown-block", CERTAIN),
    line(
        r"update-initramfs: failed for /boot/initrd|dpkg: error processing package (?:linux-image|nvidia-dkms"
        r"|initramfs-tools)",
        LIKELY,
    ),
    near(
        r"initramfs|initrd", r"kernel panic|missing|DKMS fail", sure=LIKELY, within=3, unless=r"Loading initial ramdisk"
    ),
)
FIX = (
    (
        "boot the kernel before (GRUB menu), or recovery media; then: sudo dpkg --configure -a && sudo "
        "update-initramfs -u -k all && sudo update-grub"
    ),
    "GRUB_TIMEOUT=5 in /etc/default/grub, sudo update-grub   # before the next update",
)
EXPLAINS: tuple[str, ...] = ()

"""PCIe access control sends GPU-to-GPU traffic through the root complex.

Detects: bridges with ACS on in lspci's output, NCCL hangs that end with peer-to-peer off.
Why: with ACS or a translating IOMMU, peer-to-peer writes are redirected; NCCL hangs or gets wrong data. Concerns
  hosts with several PCIe GPUs, not GB10.
Evidence: `ACSCtl: SrcValid+` on bridges.
Remedy: ACS off on the bridges (BIOS, kernel option), IOMMU in pass-through.
References: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LDRV007"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "PCIe ACS or the IOMMU redirects peer-to-peer traffic"
CAUSE = "pcie-acs-iommu-p2p-hang"
SIGNS = (
    line(r"ACSCtl:\s+SrcValid\+", LIKELY),
    near(
        r"\bACS (?:is|was|on|off|enabled|override)|(?:enabled|disabl\w+|PCIe) ACS\b|Access Control Services|\bnoacs\b",
        r"peer.to.peer| P2P\b|\bhangs?\b|deadlock|all-?reduce",
        sure=LIKELY,
        within=3,
    ),
    near(
        r"\biommu(?:=\w+)?\b|\bVT-d\b|\bAMD-Vi\b",
        r"NCCL_P2P_DISABLE|peer.to.peer| P2P\b",
        r"\bhangs?\b|\bhung\b|stuck|deadlock|wrong|garbage",
        sure=LIKELY,
        within=4,
    ),
    near(r"NCCL_P2P_DISABLE=1", r"\bworks\b|fixes|resolves|no (?:more )?hang", sure=POSSIBLE, within=2),
    line(r"NCCL.{0,40}(?:ACS|IOMMU).{0,40}(?:卡住|挂起|死锁)", LIKELY),
    near(
        r"PCIe PHB|\bPHB topology|\(PHB\)|(?:no|without) NVLink|RTX PRO [456]000|RTX (?:50[89]0|40[89]0"
        r"|3090|6000|5880|4500)",
        r"(?:hang\w*|hung|deadlock\w*|stuck)\b.{0,80}(?:NCCL|all_?reduce|TP ?= ?[248])|(?:NCCL|all_?reduce"
        r"|TP ?= ?[248]).{0,40}(?:hang\w*|hung|deadlock\w*|stuck)",
        sure=0.6,
        within=1,
        unless=r"sm_?12[01]|kernel|graph",
    ),
    near(
        r"NCCL_P2P_DISABLE\W{1,4}1",
        r"\bhangs?\b|\bhung\b|stuck|freez|froze|deadlock",
        r"\bworks\b|fixed|fixes|resolve[sd]|solved|solves|helped",
        sure=0.65,
        within=2,
    ),
)
FIX = (
    "sudo lspci -vvv | grep ACSCtl   # on {node}: a plus behind SrcValid means on",
    "BIOS: ACS and IOMMU off; or kernel options iommu=pt and pci=noacs, then reboot",
    "until then: NCCL_P2P_DISABLE=1",
)
EXPLAINS: tuple[str, ...] = ()

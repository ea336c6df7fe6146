"""The unit of a service of ours: it comes back whatever ends it, and takes nothing along when it is stopped."""

from sparkwright.domain.service import Manager, Service
from sparkwright.emit.systemd import quoted

# process: ranks that the supervisor has started are in its control group and must outlive it; so no limit on memory
# or tasks can stand here either, and an engine that the kernel kills must not end its supervisor.
# OOMScoreAdjust: a user's systemd may not go below its own; it is left out then without a complaint.
_UNIT = """\
{mark} {home}
[Unit]
Description=sparkwright: {name} of {deployment}
StartLimitIntervalSec=0
{after}
[Service]
Type=exec
ExecStart={command}
WorkingDirectory={cwd}
{who}UMask={mask}
Restart=always
RestartSec=1
KillMode=process
TimeoutStopSec=20
OOMPolicy=continue
OOMScoreAdjust=-800
TasksMax=infinity
LimitNOFILE=65536:524288

[Install]
WantedBy={target}
"""
_AFTER = "After=network-online.target docker.service ssh.service\nWants=network-online.target\n"


def unit_name(service: Service, deployment: str) -> str:
    return f"sparkwright-{service.name}-{deployment}.service"


def unit_text(service: Service, deployment: str, home: str, manager: Manager, user: str) -> str:
    """With a first line that names `home`: that is how it is found again."""
    system = manager is Manager.SYSTEM
    env = "".join(f"Environment={quoted(f'{name}={value}', dollar=False)}\n" for name, value in service.env)
    return _UNIT.format(
        mark="# sparkwright:",
        home=home,
        name=service.name,
        deployment=deployment,
        after=_AFTER if system else "",
        command=" ".join(map(quoted, service.argv)),
        cwd=(service.cwd or home).replace("%", "%%"),
        who=(f"User={user}\n" if system else "") + env,
        mask="0077" if service.private else "0022",
        target="multi-user.target" if system else "default.target",
    )

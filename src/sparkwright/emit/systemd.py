"""systemd: a system unit a rank, installed by hand; systemd ends it as `down` would and never restarts it alone."""

import shlex
from collections.abc import Iterable

from sparkwright.domain.live import WATCHDOG
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.service import Manager, Service
from sparkwright.emit import source as common
from sparkwright.emit.source import DeploymentSource, EmittedFile
from sparkwright.remote import process

_ROOM = 15  # seconds between the engine's grace and systemd's own SIGKILL, so that Docker's comes first


def systemd(source: DeploymentSource) -> tuple[EmittedFile, ...]:
    """NODE/sparkwright-NAME.service, and NODE/files and NODE/secrets.env for the folder that the unit names."""
    name = engine_unit(source)
    steps = [
        *common.filling_step(source),
        "Copy each folder to the node of its name. There, in the folder and as root:\n"
        f"   `cp {name} /etc/systemd/system/`, `mkdir -p {folder(source)}`, `cp -r . {folder(source)}/`,\n"
        "   `systemctl daemon-reload`.",
        *common.folders_step(source),
        f"`systemctl start {name}`, in this order: {common.start_order(source)}.",
        f"`journalctl -fu {name}` shows the rank. Ready is when the head has answered a real request.",
        f"`systemctl stop {name}` on all nodes ends it. When one rank ends, stop the others, too.",
    ]
    return (
        EmittedFile("README.md", common.manual(source, steps)),
        *(f for s in source.specs for f in _node(source, s)),
    )


def folder(source: DeploymentSource) -> str:
    return f"/etc/sparkwright/{source.name}"


def _node(source: DeploymentSource, spec: RankSpec) -> tuple[EmittedFile, ...]:
    docker = spec.runtime is Runtime.DOCKER
    lines = [
        "[Unit]",
        f"Description={_escaped(common.rank_title(source, spec))}",
        "Wants=network-online.target",
        f"After=network-online.target{' docker.service' if docker else ''}",
        *(("Requires=docker.service",) if docker else ()),
        "",
        "[Service]",
        "Type=exec",
        *(_docker(source, spec) if docker else _process(source, spec)),
        "# A rank that comes back alone meets ranks that have given it up: stop all nodes' units, then start all.",
        "Restart=no",
        f"TimeoutStopSec={int(source.grace) + _ROOM}",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    order_line = f"Start on the nodes in this order: {common.start_order(source)}."
    text = common.comment((common.rank_title(source, spec), order_line)) + "\n" + "\n".join(lines) + "\n"
    written, own = EmittedFile(f"{spec.node}/{engine_unit(source)}", text), spec.node
    return (written, *common.secrets_file(spec, own), *common.rank_files(spec, own))


def engine_unit(source: DeploymentSource) -> str:
    return f"sparkwright-{source.name}.service"


def _docker(source: DeploymentSource, spec: RankSpec) -> list[str]:
    name = source.container(spec)
    return [
        "# What a power cut has left.",
        f"ExecStartPre=-{_line(('docker', 'rm', '-f', '-v', name))}",
        f"ExecStart={_line(common.docker_words(spec, name, folder(source)))}",
        f"ExecStop=-{_line(('docker', 'stop', '-t', str(int(source.grace)), name))}",
        "# The journal has its logs.",
        f"ExecStopPost=-{_line(('docker', 'rm', '-f', '-v', name))}",
        "# SIGTERM by `docker stop` ends the engine with 143 or 0: both are an end that was asked for.",
        "SuccessExitStatus=143",
    ]


def _process(source: DeploymentSource, spec: RankSpec) -> list[str]:
    user = source.users.get(spec.node, "")
    return [
        "# The user whose caches, weights and venv these paths belong to.",
        f"{'User' if user else '#User'}={user}",
        *(f"Environment={quoted(f'{key}={value}', dollar=False)}" for key, value in spec.env.items()),
        *([f"EnvironmentFile=-{folder(source)}/secrets.env"] if spec.secrets else []),
        *(_files(source, spec) if spec.files else []),
        f"ExecStart={_line((*(spec.entrypoint or ()), *spec.argv))}",
        f"KillSignal={source.signal}",
        "# All processes of the rank get the signal, as `down` sends it to the process group.",
        "KillMode=control-group",
        "SuccessExitStatus=143",
        "LimitMEMLOCK=infinity",
    ]


def _files(source: DeploymentSource, spec: RankSpec) -> list[str]:
    """The lines that copy files to argv's places while the unit runs, by root's leave: secrets are root's own in
    /etc."""
    there = process.rank_dir(source.states[spec.node], source.name, spec.rank) + "/files"
    here, user = f"{folder(source)}/files", source.users.get(spec.node, "")
    copy = f"umask 077 && mkdir -p {shlex.quote(there)} && cp {here}/* {shlex.quote(there)}/"
    return [
        *([f"ExecStartPre=+{_line(('chown', '-R', user, here))}"] if user else []),
        f"ExecStartPre={_line(('sh', '-c', copy))}",
        f"ExecStopPost={_line(('rm', '-rf', there))}",
    ]


def _line(words: Iterable[str]) -> str:
    """env finds the program on systemd's PATH, wherever it is installed."""
    return " ".join(("/usr/bin/env", *(quoted(word) for word in words)))


def quoted(word: str, dollar: bool = True) -> str:
    """One word as systemd unquotes it: C escapes in double quotes; `%` is a specifier, `$` a variable in commands."""
    text = _escaped(word.replace("\\", "\\\\")).replace('"', '\\"').replace("\n", "\\n")
    text = text.replace("$", "$$") if dollar else text
    return text if text and not set(text) & set(" \t'\";#\\") else f'"{text}"'


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


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
{kind}
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
# A process that is stopped hears no signal but SIGKILL.
_WATCHED = f"Type=notify\nNotifyAccess=main\nWatchdogSec={WATCHDOG:.0f}\nWatchdogSignal=SIGKILL"
_AFTER = "After=network-online.target docker.service ssh.service\nWants=network-online.target\n"


def unit_name(service: Service, deployment: str) -> str:
    return f"sparkwright-{service.name}-{deployment}.service"


def unit_text(service: Service, deployment: str, home: str, manager: Manager, user: str) -> str:
    """The unit's text. Its first line names `home`, by which it is found again."""
    system = manager is Manager.SYSTEM
    env = "".join(f"Environment={quoted(f'{name}={value}', dollar=False)}\n" for name, value in service.env)
    return _UNIT.format(
        mark="# sparkwright:",
        home=home,
        name=service.name,
        deployment=deployment,
        after=_AFTER if system else "",
        kind=_WATCHED if service.watchdog else "Type=exec",
        command=" ".join(map(quoted, service.argv)),
        cwd=(service.cwd or home).replace("%", "%%"),
        who=(f"User={user}\n" if system else "") + env,
        mask="0077" if service.private else "0022",
        target="multi-user.target" if system else "default.target",
    )

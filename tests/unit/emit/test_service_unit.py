"""The unit of a supervisor, a gateway or a proxy."""

from dataclasses import replace

from sparkwright.domain.service import Manager, Service
from sparkwright.emit.systemd import unit_name, unit_text

SERVICE = Service("supervisor", ("/usr/bin/python3", "-I", "/a b/50%"), (("NAME", 'a "b" $c'),), private=False)


def unit_lines(manager: Manager, service: Service = SERVICE) -> list[str]:
    return unit_text(service, "twin", "/state/supervision/twin", manager, "ai").splitlines()


def test_it_always_comes_back_and_takes_nothing_along() -> None:
    """No limit of starts; its end is never the end of ranks that it has started, nor theirs its own."""
    text = unit_lines(Manager.USER)
    wanted = {"Restart=always", "StartLimitIntervalSec=0", "KillMode=process", "OOMPolicy=continue"}
    assert wanted <= set(text) and not [line for line in text if line.startswith("Memory")]


def test_words_reach_the_program_as_they_are() -> None:
    """Blanks, quotes, percent and dollar signs."""
    text = unit_lines(Manager.USER)
    assert 'ExecStart=/usr/bin/python3 -I "/a b/50%%"' in text
    assert 'Environment="NAME=a \\"b\\" $c"' in text


def test_a_system_unit_runs_as_the_user() -> None:
    """Nothing of ours is root's; a user's unit cannot report it and need not."""
    assert "User=ai" in unit_lines(Manager.SYSTEM) and "WantedBy=multi-user.target" in unit_lines(Manager.SYSTEM)
    assert "User=ai" not in unit_lines(Manager.USER) and "WantedBy=default.target" in unit_lines(Manager.USER)


def test_it_states_whose_it_is() -> None:
    """`down` finds its units by their first line, whatever they are called."""
    assert unit_lines(Manager.USER)[0] == "# sparkwright: /state/supervision/twin"
    assert unit_name(SERVICE, "twin") == "sparkwright-supervisor-twin.service"


def test_what_holds_keys_writes_for_its_user_only() -> None:
    """The gateway and its proxy; a supervisor makes folders that engines of other users read."""
    assert "UMask=0022" in unit_lines(Manager.USER)
    assert "UMask=0077" in unit_lines(Manager.USER, Service("door", ("/usr/bin/python3",)))


def test_a_program_that_hangs_is_ended_by_systemd() -> None:
    """Guards a supervisor that is stopped or whose loop is blocked: no signal but SIGKILL reaches the former."""
    text = unit_lines(Manager.USER, replace(SERVICE, watchdog=True))
    assert {"Type=notify", "NotifyAccess=main", "WatchdogSec=30", "WatchdogSignal=SIGKILL"} <= set(text)
    assert "Type=exec" in unit_lines(Manager.USER) and not [
        line for line in unit_lines(Manager.USER) if "Watchdog" in line
    ]

"""A deployment that `up` made: connected to by its name, and what its keys used."""

import json

import pytest

from functional.command import UserShell
from functional.test_install_supervisor import user_shell
from functional.test_supervised_cli import up

pytestmark = pytest.mark.full

__all__ = ["user_shell"]  # a fixture


def test_a_deployment_is_connected_to_and_its_use_is_listed(user_shell: UserShell) -> None:
    """Address, key, authority and model are found by the name alone; the request is in `keys list`, and limits hold."""
    up(user_shell)
    code, out, err = user_shell.run("connect", "curl", "twin", "--json")
    assert code == 0, out + err
    found = json.loads(out)
    assert (found["works"], found["simulated"]) == (True, True)
    assert found["key_file"].endswith("default.key") and found["authority"].endswith("ca.crt")
    code, _, err = user_shell.run("connect", "curl", "twin", "--key", "nobody")
    assert (code, "keys of the head node: default" in err) == (2, True)
    assert "no tunnel is needed" in user_shell.run("connect", "curl", "twin", "--tunnel")[2]
    (used,) = json.loads(user_shell.run("keys", "list", "--json")[1])["usage"]
    assert (used["key"], used["model"], used["finished"]) == ("default", found["model"], used["requests"])
    assert used["prompt"] > 0 and used["completion"] > 0
    assert "1 a minute" in user_shell.run("keys", "limit", "default", "--per-minute", "1")[1]
    user_shell.run("connect", "curl", "twin")
    code, out, _ = user_shell.run("connect", "curl", "twin")
    assert (code, "its limit of 1 requests a minute" in out) == (1, True)
    text = user_shell.run("keys", "list")[1]
    assert "1 a minute" in text and "refused" in text
    assert user_shell.run("down", "twin")[0] == 0

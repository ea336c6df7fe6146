"""Settings of clients: the data, what is filled in, what is left out, and what must not get into a file."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
import yaml

from sparkwright.domain.errors import UsageError
from sparkwright.gateway.clients import FORMATS, PROTOCOLS, Client, client, clients, merged, served, settings
from unit.for_each import for_each

FULL: dict[str, Any] = {"key_file": "/home/ann/my keys/k", "authority": "/home/ann/ca.crt", "context": 131072}
READ: dict[str, Any] = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}


def test_each_row_is_whole() -> None:
    """Known protocol and format, a public page, and somewhere for the address, the model and the key to go."""
    for one in clients().values():
        assert one.protocol in PROTOCOLS
        assert one.format in FORMATS
        assert bool(one.format) == bool(one.file) == bool(one.content)
        assert one.see.startswith("https://")
        assert set(one.needs) <= {"tools"}
        made = settings(one, served("https://spark-1:8443/v1", "a/model-1", **FULL))
        everything = made.exports + made.text + made.snippet + " ".join(made.notes)
        for needed in ("https://spark-1:8443", "a/model-1", "my keys", "/home/ann/ca.crt"):
            assert needed in everything, f"{one.name}: {needed}"
        assert "<<" not in everything


def test_files_read_back_as_they_were_meant() -> None:
    """JSON, TOML and YAML hold the same values, numbers as numbers."""
    for one in clients().values():
        if one.format:
            made = settings(one, served("https://[fe80::1]:8443", "m", **FULL))
            assert READ[one.format](made.text) == made.tree, one.name


def test_what_is_not_known_is_left_out() -> None:
    """No line has a hole without key, authority and context, and no table lacks half of its needs."""
    for one in clients().values():
        made = settings(one, served("http://127.0.0.1:8000", "m"))
        everything = made.exports + made.text + made.snippet
        assert not any(hole in everything for hole in ("<<", "None", "cat "))
    assert "auth" not in settings(client("codex"), served("http://h/v1", "m")).text


@for_each(
    "url", ["", "ftp://h/v1", "http://h/v1\nx", "http://h/v1 -x", "http://$(id)/v1", "http://h/v1;id", "http://h'/v1"]
)
def test_an_address_that_is_none_gets_nowhere(url: str) -> None:
    """A node's report becomes part of commands and files only if it is a plain address."""
    with pytest.raises(UsageError):
        served(url, "m")


@for_each("model", ["", "-x", "a b", "$(id)", "m\n", 'm"', "m'", "{x}", "a" * 201, "<<url>>"])
def test_a_model_that_settings_cannot_hold_gets_nowhere(model: str) -> None:
    """An endpoint's report becomes part of commands and files only if it is a plain name."""
    with pytest.raises(UsageError):
        served("http://h/v1", model)


def test_merging_keeps_what_was_there() -> None:
    """Other keys stay at every depth; what is no plain object, or another format, is refused."""
    row = client("opencode")
    new = settings(row, served("http://h/v1", "m", **FULL))
    before = {"theme": "dark", "model": "old", "provider": {"other": {"name": "x"}}}
    tree = json.loads(merged(row, json.dumps(before), new))
    assert (tree["theme"], tree["model"]) == ("dark", "sparkwright/m")
    assert set(tree["provider"]) == {"other", "sparkwright"}
    assert merged(row, "", new) == merged(row, new.text, new) == new.text
    for bad in ("[]", "{ // comment\n}", '"x"', "[" * 5000):
        with pytest.raises(UsageError):
            merged(row, bad, new)
    with pytest.raises(UsageError):
        merged(client("continue"), "name: mine", new)


def test_the_output_limit_is_a_share_of_the_context() -> None:
    """A quarter, at most 32,768; not known where the context is not."""
    assert [served("http://h", "m", context=n).output for n in (0, 4096, 1 << 20)] == [0, 1024, 32768]


def test_a_row_with_a_key_too_many_is_refused() -> None:
    """The schema is strict: a misspelt key is no silent nothing."""
    with pytest.raises(TypeError):
        Client(name="x", title="x", protocol="chat", see="", fiel="x")  # type: ignore[call-arg]

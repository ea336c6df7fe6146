"""Keys: what one looks like, who knows it, and the file."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.domain.codec import Unreadable
from sparkwright.domain.errors import UsageError
from sparkwright.gateway.keys import (
    Key,
    Keys,
    Role,
    add_key,
    digest,
    key_from,
    key_owner,
    parse,
    shown_in,
    text_of,
    without,
)
from unit.for_each import for_each

ONE, TWO = key_from(bytes(24)), key_from(bytes([1]) * 24)
KNOWN = Keys((Key("laptop", digest(ONE.reveal()), 5.0, "ann@desk"), Key("ci", digest(TWO.reveal()), deployment="big")))


def test_a_key_states_whose_it_is_and_hides_itself() -> None:
    """Guards that leaked keys can be searched for by their beginning, and that ours do not leak by repr."""
    assert ONE.reveal() == "sk-sw-" + "00" * 24
    assert "00" not in repr(ONE)


def test_the_file_holds_hashes_only() -> None:
    """Guards that anyone who reads the file gets no key."""
    text = text_of(KNOWN)
    assert ONE.reveal() not in text and TWO.reveal() not in text
    assert parse(text) == KNOWN
    assert parse(text_of(Keys())) == Keys()


@pytest.mark.parametrize(
    "text", ["", " \n", "{half", "[]", '{"keys": [{"name": "x"}]}', '{"keys": [], "version": 3}', "null"]
)
def test_a_file_that_is_none_of_ours_is_unreadable(text: str) -> None:
    """Guards that a broken file, or one of a newer version, is never taken for one without keys."""
    with pytest.raises(Unreadable):
        parse(text)


def test_a_key_opens_what_it_was_made_for() -> None:
    """Guards that a key for one deployment opens no other, and that one shown key in several headers is enough."""
    assert key_owner(KNOWN.keys, "small", [ONE.reveal()]) == KNOWN.keys[0]
    assert key_owner(KNOWN.keys, "big", ["x", TWO.reveal()]) == KNOWN.keys[1]
    assert key_owner(KNOWN.keys, "small", [TWO.reveal()]) is None
    assert key_owner(KNOWN.keys, "big", []) is key_owner((), "big", [ONE.reveal()]) is None


def test_an_older_program_refuses_a_file_that_restricts() -> None:
    """Guards that a program without roles, which would let a viewer's key use the API, does not read such a file."""
    viewer = add_key(KNOWN, Key("wall", "x", role=Role.VIEWER))
    assert json.loads(text_of(KNOWN))["version"] == 1 and json.loads(text_of(viewer))["version"] == 2
    assert parse(text_of(viewer)).keys == viewer.keys


@given(st.text())
def test_no_other_text_is_a_key(text: str) -> None:
    """Guards that nothing but the key opens, whatever bytes are sent; also not its hash."""
    assert key_owner(KNOWN.keys, "big", [text, KNOWN.keys[0].sha256]) is None


@for_each(
    "headers, shown",
    [
        ({"authorization": "Bearer k"}, ("k",)),
        ({"authorization": "bearer  k "}, ("k",)),
        ({"authorization": "Basic k"}, ()),
        ({"authorization": "k"}, ()),
        ({"x-api-key": "k"}, ("k",)),
        ({"api-key": "k", "authorization": "Bearer j"}, ("j", "k")),
        ({}, ()),
    ],
)
def test_where_clients_show_it(headers: dict[str, str], shown: tuple[str, ...]) -> None:
    """Guards the headers of OpenAI's, Anthropic's and Azure's clients."""
    assert shown_in(headers) == shown


def test_names_are_taken_once() -> None:
    """Guards that a name reports one key; the same name for one deployment and for all is two keys."""
    more = add_key(KNOWN, Key("laptop", "x", deployment="big"))
    assert len(more.keys) == 3
    with pytest.raises(UsageError, match="there already"):
        add_key(more, Key("laptop", "y"))
    for name in ("", "A", "../x", "x" * 64, "a b"):
        with pytest.raises(UsageError, match="small letters"):
            add_key(KNOWN, Key(name, "x"))


def test_revoking_takes_all_of_a_name_or_one() -> None:
    """Guards what is left, and that a name that is not there is reported with those that are."""
    both = add_key(KNOWN, Key("laptop", "x", deployment="big"))
    assert without(both, "laptop", "big")[0] == KNOWN
    assert without(both, "laptop") == (Keys((KNOWN.keys[1],)), (both.keys[0], both.keys[2]))
    with pytest.raises(UsageError, match="no key phone") as caught:
        without(KNOWN, "phone")
    assert caught.value.hint == "keys: laptop (all deployments), ci (big)"
    assert json.loads(text_of(without(KNOWN, "ci")[0]))["keys"][0]["name"] == "laptop"

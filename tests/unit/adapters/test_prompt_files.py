"""Prompts on the head's disk: noise without their key, gone when they are to be gone, and no reason to fail."""

import errno
import json
import os
import stat
from pathlib import Path

import pytest

from sparkwright.adapters import prompt_files
from sparkwright.adapters.prompt_files import PromptFiles
from sparkwright.domain.codec import Unreadable
from sparkwright.gateway.prompts import KeptPrompt, prompt_to_keep

SECRET = "the password of the vault is swordfish. "
CHAT = "/v1/chat/completions"


def kept_prompt(text: str = SECRET, at: float = 1.0) -> KeptPrompt:
    prompt = prompt_to_keep(
        CHAT, json.dumps({"model": "m", "messages": [{"role": "user", "content": text * 300}]}).encode()
    )
    assert prompt
    return KeptPrompt(prompt, at, 2000, (3,) * len(prompt.blocks), len(prompt.body))


@pytest.fixture
def prompt_store(tmp_path: Path) -> PromptFiles:
    home = tmp_path / "supervision" / "tiny"
    home.mkdir(parents=True)
    return PromptFiles(home)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def everything(prompt_store: PromptFiles) -> bytes:
    return b"".join(path.read_bytes() for path in prompt_store.folder.iterdir())


def test_a_prompt_comes_back_and_nobody_else_reads_it(prompt_store: PromptFiles, tmp_path: Path) -> None:
    """The text is in no file; the key is apart from the texts, and both are closed to others."""
    (stored,) = prompt_store.save([kept_prompt()])
    assert stored.prompt.body == "" and stored.name
    assert prompt_store.load() == (stored,)
    assert prompt_store.body(stored) == kept_prompt().prompt.body
    assert b"swordfish" not in everything(prompt_store) and CHAT.encode() not in everything(prompt_store)
    assert (
        prompt_store.key == tmp_path / "door" / "tiny.prompts.key"
        and prompt_store.folder not in prompt_store.key.parents
    )
    assert {mode_of(prompt_store.key), *map(mode_of, prompt_store.folder.iterdir())} == {0o600} and mode_of(
        prompt_store.folder
    ) == 0o700


def test_only_what_is_kept_stays(prompt_store: PromptFiles) -> None:
    """A text that another one replaced is removed from the disk at the next save; the others are not written again."""
    first, second = prompt_store.save([kept_prompt(), kept_prompt("other words here ")])
    before = (prompt_store.folder / first.name).stat().st_ino
    assert prompt_store.save([first]) == (first,)
    assert {path.name for path in prompt_store.folder.iterdir()} == {first.name, "index"}
    assert (prompt_store.folder / first.name).stat().st_ino == before
    with pytest.raises(OSError, match=second.name):
        prompt_store.body(second)


def test_nothing_is_left_of_it(prompt_store: PromptFiles) -> None:
    """Neither texts nor key; also twice, and where nothing ever was."""
    prompt_store.forget()
    prompt_store.save([kept_prompt()])
    prompt_store.forget()
    assert not prompt_store.folder.exists() and not prompt_store.key.exists()
    assert prompt_store.load() == ()


def test_a_deployment_that_was_taken_down_gets_no_files(prompt_store: PromptFiles) -> None:
    """A gateway that serves others may have prompts of it left."""
    prompt_store.folder.parent.rmdir()
    with pytest.raises(FileNotFoundError, match="taken down"):
        prompt_store.save([kept_prompt()])
    assert not prompt_store.key.exists()


def test_a_key_that_others_could_read_is_closed(prompt_store: PromptFiles) -> None:
    """The other secrets of the head are treated so."""
    prompt_store.save([kept_prompt()])
    prompt_store.key.chmod(0o644)
    assert prompt_store.load() and mode_of(prompt_store.key) == 0o600


@pytest.mark.parametrize("what", ["lost", "short", "other", "index", "exchanged"])
def test_what_cannot_be_read_is_named(prompt_store: PromptFiles, what: str) -> None:
    """A lost or foreign key and damaged files are an error with a reason, never a wrong text."""
    one, two = prompt_store.save([kept_prompt(), kept_prompt("other words here ")])
    if what == "lost":
        prompt_store.key.unlink()
    elif what == "short":
        prompt_store.key.write_bytes(b"x")
    elif what == "other":
        prompt_store.key.write_bytes(os.urandom(32))
    elif what == "index":
        (prompt_store.folder / "index").write_bytes(b"")
    else:
        (prompt_store.folder / one.name).write_bytes((prompt_store.folder / two.name).read_bytes())
    with pytest.raises(Unreadable) as told:
        prompt_store.body(one) if what == "exchanged" else prompt_store.load()
    assert "swordfish" not in str(told.value)


def test_a_lost_key_takes_its_texts_along(prompt_store: PromptFiles) -> None:
    """They are noise for ever: the next save begins anew."""
    prompt_store.save([kept_prompt()])
    prompt_store.key.unlink()
    (stored,) = prompt_store.save([kept_prompt("other words here ")])
    assert {path.name for path in prompt_store.folder.iterdir()} == {stored.name, "index"}
    assert prompt_store.load() == (stored,)


def test_a_full_disk_leaves_what_was_there(prompt_store: PromptFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error goes to the caller, who reports it; the earlier texts can still be read."""
    (stored,) = prompt_store.save([kept_prompt()])

    def full(path: Path, content: bytes, sync: bool = True) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(prompt_files, "write", full)
    with pytest.raises(OSError, match="No space left"):
        prompt_store.save([stored, kept_prompt("other words here ")])
    assert prompt_store.load() == (stored,) and prompt_store.body(stored) == kept_prompt().prompt.body

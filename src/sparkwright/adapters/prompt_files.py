"""Texts of prompts on the head node, encrypted; their key is a file of its own in another folder.

Whoever can read both as this user can read the texts. A copy of the folder alone, in a backup or a bundle, is noise.
"""

import os
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from errno import ENOENT
from pathlib import Path

from sparkwright.adapters.artifacts import write
from sparkwright.adapters.encryption import KEY_BYTES, CipherMissing, TextCipher
from sparkwright.domain.codec import Unreadable, from_json, to_json
from sparkwright.domain.values import dataclass, replace
from sparkwright.gateway.prompts import KeptPrompt

FOLDER = "prompts"
_INDEX = "index"
_NAME = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class _Index:
    kept: tuple[KeptPrompt, ...] = ()
    version: int = 1


class PromptFiles:
    """home: the supervisor's folder of the deployment. The key is in the state folder's `door`, as are the API keys."""

    def __init__(self, home: Path) -> None:
        self.folder = home / FOLDER
        self.key = home.parent.parent / "door" / f"{home.name}.prompts.key"

    def load(self) -> tuple[KeptPrompt, ...]:
        """The prompts without their bodies. Raises Unreadable, CipherMissing, OSError; nothing kept is no error."""
        try:
            sealed = (self.folder / _INDEX).read_bytes()
        except FileNotFoundError:
            return ()
        index = from_json(_Index, self._cipher(make=False).decrypt(sealed, _INDEX.encode()))
        return tuple(one for one in index.kept if _NAME.fullmatch(one.name) and (self.folder / one.name).exists())

    def body(self, kept: KeptPrompt) -> str:
        """Raises Unreadable, CipherMissing, OSError."""
        sealed = (self.folder / kept.name).read_bytes()
        return self._cipher(make=False).decrypt(sealed, kept.name.encode()).decode()

    def save(self, kept: Iterable[KeptPrompt]) -> tuple[KeptPrompt, ...]:
        """Write all of these, remove every other text, and return them without bodies.

        Raises CipherMissing, OSError (also if the disk is full; what was there before stays readable).
        """
        if not self.folder.parent.is_dir():
            raise FileNotFoundError(ENOENT, "the deployment was taken down")
        cipher = self._cipher(make=True)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        stored = []
        for one in kept:
            if not one.name:
                named = replace(one, name=os.urandom(8).hex())
                write(
                    self.folder / named.name, cipher.encrypt(one.prompt.body.encode(), named.name.encode()), sync=False
                )
                one = replace(named, prompt=replace(one.prompt, body=""))
            stored.append(one)
        index = to_json(_Index(tuple(stored))).encode()
        write(self.folder / _INDEX, cipher.encrypt(index, _INDEX.encode()), sync=False)
        there = {one.name for one in stored} | {_INDEX}
        for path in self.folder.iterdir():
            if path.name not in there:
                path.unlink(missing_ok=True)
        return tuple(stored)

    def forget(self) -> None:
        """Remove the key first: without it the texts are noise. Raises OSError."""
        self.key.unlink(missing_ok=True)
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def _cipher(self, make: bool) -> TextCipher:
        try:
            key = self.key.read_bytes()
            if self.key.stat().st_mode & 0o077:
                self.key.chmod(0o600)
        except FileNotFoundError:
            if not make:
                raise Unreadable("its key is gone") from None
            key = os.urandom(KEY_BYTES)
            cipher = TextCipher(key)
            self.key.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
            with suppress(FileNotFoundError):
                shutil.rmtree(self.folder)
            write(self.key, key)
            return cipher
        if len(key) != KEY_BYTES:
            raise Unreadable(f"its key has {len(key)} bytes, not {KEY_BYTES}")
        return TextCipher(key)


TROUBLES = (Unreadable, CipherMissing, OSError)

"""Texts encrypted by libcrypto: what NIST's own vector says, and what must not be read."""

import ctypes.util
import os

import pytest

from sparkwright.adapters import encryption
from sparkwright.adapters.encryption import KEY_BYTES, CipherMissing, TextCipher
from sparkwright.domain.codec import Unreadable

# Test case 16 of McGrew and Viega, "The Galois/Counter Mode of Operation" (also in NIST's set).
KEY = bytes.fromhex("feffe9928665731c6d6a8f9467308308" * 2)
NONCE = bytes.fromhex("cafebabefacedbaddecaf888")
TEXT = bytes.fromhex(
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
    "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
)
NAME = bytes.fromhex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
SEALED = bytes.fromhex(
    "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
    "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
)
TAG = bytes.fromhex("76fc6ece0f4e1768cddf8853bb2d551b")


def test_a_published_vector_is_read() -> None:
    """It is AES-256-GCM as others have it, not only the inverse of itself."""
    assert TextCipher(KEY).decrypt(NONCE + SEALED + TAG, NAME) == TEXT


def test_a_text_comes_back_and_shows_nothing() -> None:
    """An empty and a large one, too; twice the same text is never the same bytes."""
    cipher = TextCipher(os.urandom(KEY_BYTES))
    for text in (b"", b"secret " * 3, os.urandom(3_000_000)):
        sealed = cipher.encrypt(text, b"one")
        assert cipher.decrypt(sealed, b"one") == text
        assert sealed != cipher.encrypt(text, b"one")
        assert len(text) < 8 or text not in sealed


@pytest.mark.parametrize("wrong", ["bit", "name", "key", "cut", "short", "tag"])
def test_what_was_changed_is_not_read(wrong: str) -> None:
    """Neither a damaged file nor one that was exchanged for another gives a text."""
    key = os.urandom(KEY_BYTES)
    sealed = bytearray(TextCipher(key).encrypt(b"a prompt of somebody", b"one"))
    name = b"two" if wrong == "name" else b"one"
    if wrong in ("bit", "tag"):
        sealed[14 if wrong == "bit" else -1] ^= 1
    cut = {"cut": -1, "short": 9}.get(wrong)
    reader = TextCipher(os.urandom(KEY_BYTES) if wrong == "key" else key)
    with pytest.raises(Unreadable):
        reader.decrypt(bytes(sealed)[:cut], name)


def test_a_machine_without_libcrypto_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing is kept, in place of a text in the clear."""
    monkeypatch.setattr(encryption, "_NAMES", ("libcrypto.so.999",))
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    encryption._library.cache_clear()
    with pytest.raises(CipherMissing, match="no libcrypto"):
        TextCipher(bytes(KEY_BYTES))
    encryption._library.cache_clear()


def test_a_key_has_its_length() -> None:
    """A short key is a damaged file."""
    with pytest.raises(ValueError, match="32 bytes, not 4"):
        TextCipher(b"1234")

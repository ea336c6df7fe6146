"""AES-256-GCM by the machine's own libcrypto, which every system's Python needs for TLS.

The program on a head has no compiled parts of its own, so no package of Python's can do it there.
"""

import ctypes
import ctypes.util
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from sparkwright.domain.codec import Unreadable

KEY_BYTES = 32
_NONCE, _TAG = 12, 16
_GET_TAG, _SET_TAG = 0x10, 0x11  # EVP_CTRL_AEAD_*
_NAMES = ("libcrypto.so.3", "libcrypto.so.1.1")


class CipherMissing(Exception):
    """No libcrypto can be loaded here."""


@cache
def _library() -> ctypes.CDLL:
    found = (*_NAMES, ctypes.util.find_library("crypto") or "")
    for name in filter(None, found):
        with suppress(OSError):
            return _typed(ctypes.CDLL(name))
    raise CipherMissing("no libcrypto (OpenSSL) on this machine")


def _typed(library: ctypes.CDLL) -> ctypes.CDLL:
    library.EVP_CIPHER_CTX_new.restype = library.EVP_aes_256_gcm.restype = ctypes.c_void_p
    library.EVP_CIPHER_CTX_free.argtypes = [ctypes.c_void_p]
    library.EVP_CIPHER_CTX_free.restype = None
    library.EVP_CIPHER_CTX_ctrl.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_char_p]
    text, size = ctypes.c_char_p, ctypes.POINTER(ctypes.c_int)
    for way in ("Encrypt", "Decrypt"):
        getattr(library, f"EVP_{way}Init_ex").argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, text, text]
        getattr(library, f"EVP_{way}Update").argtypes = [ctypes.c_void_p, ctypes.c_char_p, size, text, ctypes.c_int]
        getattr(library, f"EVP_{way}Final_ex").argtypes = [ctypes.c_void_p, ctypes.c_char_p, size]
    return library


class TextCipher:
    """Encrypts texts with one key of 32 bytes. Raises CipherMissing."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
        self._key, self._library = key, _library()

    def encrypt(self, text: bytes, name: bytes) -> bytes:
        """Return nonce, ciphertext and tag. name: has to be the same to decrypt it, and is not secret."""
        nonce = os.urandom(_NONCE)
        with self._begun("Encrypt", nonce, name) as step:
            sealed = step(text)
            tag = ctypes.create_string_buffer(_TAG)
            self._control(step.context, _GET_TAG, tag)
        return nonce + sealed + tag.raw

    def decrypt(self, sealed: bytes, name: bytes) -> bytes:
        """Raises Unreadable if it was changed, cut, or encrypted by another key or under another name."""
        nonce, body, tag = sealed[:_NONCE], sealed[_NONCE:-_TAG], sealed[-_TAG:]
        if len(sealed) < _NONCE + _TAG:
            raise Unreadable("cut short")
        with self._begun("Decrypt", nonce, name) as step:
            self._control(step.context, _SET_TAG, ctypes.create_string_buffer(tag, _TAG))
            return step(body)

    def _control(self, context: int, what: int, tag: Any) -> None:
        if self._library.EVP_CIPHER_CTX_ctrl(context, what, _TAG, tag) != 1:
            raise Unreadable("no tag")

    @contextmanager
    def _begun(self, way: str, nonce: bytes, name: bytes) -> Iterator["_Step"]:
        library = self._library
        context = library.EVP_CIPHER_CTX_new()
        try:
            begin: Callable[..., int] = getattr(library, f"EVP_{way}Init_ex")
            if begin(context, library.EVP_aes_256_gcm(), None, self._key, nonce) != 1:
                raise Unreadable("the cipher does not begin")
            step = _Step(library, way, context)
            step.name(name)
            yield step
        finally:
            library.EVP_CIPHER_CTX_free(context)


class _Step:
    def __init__(self, library: ctypes.CDLL, way: str, context: int) -> None:
        self._update: Callable[..., int] = getattr(library, f"EVP_{way}Update")
        self._final: Callable[..., int] = getattr(library, f"EVP_{way}Final_ex")
        self.context = context

    def name(self, name: bytes) -> None:
        size = ctypes.c_int()
        if self._update(self.context, None, ctypes.byref(size), name, len(name)) != 1:
            raise Unreadable("the cipher takes no name")

    def __call__(self, text: bytes) -> bytes:
        out, size = ctypes.create_string_buffer(len(text) + _TAG), ctypes.c_int()
        if self._update(self.context, out, ctypes.byref(size), text, len(text)) != 1:
            raise Unreadable("the cipher fails")
        if self._final(self.context, ctypes.create_string_buffer(_TAG), ctypes.byref(ctypes.c_int())) != 1:
            raise Unreadable("changed since it was written, or of another key")
        return out.raw[: size.value]

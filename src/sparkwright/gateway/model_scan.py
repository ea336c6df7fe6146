"""The model that a request's body names, found while the body streams by: what was read before is not kept.

Only the top level counts: a `"model"` inside a message or a tool's schema is text. Of a body that is not what its type
promises no model is found; its engine reports what is wrong with it.
"""

import json
import re
from typing import Protocol

_LONGEST = 4096  # of a name, and of the keys before it
_HEAD = 8192
_DEEPEST = 256  # no request nests deeper, and no engine reads one that does
_TOP, _DEEP = re.compile(rb'["{}\[\]:,]'), re.compile(rb'["{}\[\]]')
_REST = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_FIELD = re.compile(rb'form-data;(?:[^"\r\n]*;)?\s*name="?model"?\s*(?:\r\n|;|$)', re.IGNORECASE)
_DECODER = json.JSONDecoder(strict=False)
_BOUNDARY = re.compile(r'boundary="?([^\s";,]{1,200})', re.IGNORECASE)


class ModelScan(Protocol):
    """name: '' until it is found; done: nothing that follows can change it."""

    name: str
    done: bool

    def feed(self, chunk: bytes) -> None: ...


class JsonScan:
    """Finds the model in a JSON object; linear in its length, whatever it contains."""

    def __init__(self) -> None:
        self.name, self.done = "", False
        self._depth = 0
        self._carry = b""
        self._inside = False  # a string that is of no interest
        self._key: bytes | None = None
        self._value = False

    def feed(self, chunk: bytes) -> None:
        data, at, self._carry = self._carry + chunk, 0, b""
        if self._inside:
            at = self._end(data, 0)
            self._inside = at < 0
            if at < 0:
                return
        while not self.done and (found := (_TOP if self._depth == 1 else _DEEP).search(data, at)):
            at = self._string(data, found.start()) if found[0] == b'"' else self._mark(found[0], found.end())
            if at < 0:
                return

    def _end(self, data: bytes, at: int) -> int:
        """The position behind the string that continues at `at`; -1 if it ends in a later chunk."""
        quote = data.find(b'"', at)
        if quote >= 0 and data.find(b"\\", at, quote) < 0:  # many times as fast as the expression
            return quote + 1
        rest = _REST.match(data, at)
        end = rest.end() if rest else at
        if data[end : end + 1] == b'"':
            return end + 1
        self._carry = data[end:]  # a backslash whose letter comes later
        return -1

    def _string(self, data: bytes, start: int) -> int:
        end = self._end(data, start + 1)
        if end < 0 and self._depth == 1 and len(data) - start <= _LONGEST:
            self._carry = data[start:]
        elif end < 0:
            self._inside = True
        elif self._value:
            self.name, self.done = _decoded(data[start:end]), True
        elif self._key is None:
            self._key = data[start:end]
        return end

    def _mark(self, mark: bytes, end: int) -> int:
        if mark == b":":
            self._value = self._key == b'"model"'
        elif mark == b",":
            self._key, self._value = None, False
        else:
            opens = mark in b"{["
            self.done = self._depth == 0 and mark != b"{"
            self._depth += 1 if opens else -1
            self._value = False
            self.done = self.done or not 0 < self._depth <= _DEEPEST
        return end


def _decoded(raw: bytes) -> str:
    try:
        return str(_DECODER.decode(raw.decode("utf-8", "replace")))[:_LONGEST]
    except ValueError:
        return ""


class FormScan:
    """Finds the model in multipart/form-data, the form of transcriptions; it skips the file itself."""

    def __init__(self, boundary: str) -> None:
        self.name, self.done = "", False
        self._delimiter = b"\r\n--" + boundary.encode("latin-1", "replace")
        self._data, self._head, self._ours = b"\r\n", False, False

    def feed(self, chunk: bytes) -> None:
        self._data += chunk
        while not self.done and (self._in_head() if self._head else self._in_value()):
            pass

    def _in_value(self) -> bool:
        end = self._data.find(self._delimiter)
        if end < 0:
            self.done = self._ours and len(self._data) > _LONGEST
            self._data = self._data if self._ours else self._data[-len(self._delimiter) :]
            return False
        if self._ours:
            self.name, self.done = self._data[:end].decode("utf-8", "replace").strip(), True
        self._data, self._head = self._data[end + len(self._delimiter) :], True
        return True

    def _in_head(self) -> bool:
        head, found, rest = self._data.partition(b"\r\n\r\n")
        if not found:
            self.done = self._data[:2] == b"--" or len(self._data) > _HEAD
            return False
        # An empty value's delimiter begins with the line break that ends the head
        self._ours, self._head, self._data = bool(_FIELD.search(head)), False, b"\r\n" + rest
        if self._ours:
            self._data = rest
        return True


def scan_for(content_type: str) -> ModelScan:
    """The scan for a body of this type; anything but a form is read as JSON, as engines do."""
    form = _BOUNDARY.search(content_type) if content_type.lower().startswith("multipart/form-data") else None
    return FormScan(form[1]) if form else JsonScan()

"""The Hugging Face hub, or what speaks its API: a model's config.json and the sizes of its files, before any download.

Two requests, both small: `/api/models/ID/tree/REV` and `/ID/resolve/REV/config.json`; for headers, ranges of the files
at `/ID/resolve/REV/` (hub_headers.py). The answer is valid for a day.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urljoin, urlsplit

import httpcore

from sparkwright.adapters.artifacts import private_folder, write
from sparkwright.adapters.hub_headers import listing, quantized
from sparkwright.adapters.openai_http import plain_headers
from sparkwright.adapters.tls import tls_context
from sparkwright.domain.checkpoint import Published
from sparkwright.domain.command import Secret
from sparkwright.domain.facts import Unknown
from sparkwright.domain.foreign_json import read_json
from sparkwright.ports import Clock

T = TypeVar("T")
HUB = "https://huggingface.co"
_UNREACHED = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, TimeoutError, OSError)
_FRESH = 24 * 3600.0
_MOST_BYTES = 32 * 1024 * 1024
_MOST_LISTED = 16 * 1024 * 1024  # of the list of files, over all pages
_MOST_PAGES = 20
_MOST_HOPS = 3
_HEADERS = 30.0  # seconds for everything of one model's headers
_PART = 206
_EXPANDED = "&sort=downloads&limit=20&expand[]=safetensors"
_OK, _MOVED, _NO_RIGHTS, _NOT_FOUND = 200, (301, 302, 303, 307, 308), (401, 403), 404
_NEXT = re.compile(r'<([^>]+)>\s*;\s*rel="?next"?')
# Which files engines load, the first pattern that any file matches: a second copy of the weights is not counted.
_LOADED = (r"model[^/]*\.safetensors", r"(?!consolidated)[^/]+\.safetensors", r"[^/]+\.safetensors", r"[^/]+\.bin")


class _Refused(Exception):
    """The hub answered, and not with what was asked for."""

    def __init__(self, url: str, status: int) -> None:
        super().__init__(url)
        self.url, self.status = url, status


class HttpHub:
    """`look` is the hub of app.services. limit: seconds for everything together. Goes through no proxy."""

    def __init__(
        self, root: Path, clock: Clock, at: str = HUB, token: Secret | None = None, limit: float = 8.0
    ) -> None:
        self._root, self._clock, self._token, self._limit = root, clock, token, limit
        self._hub_url = at.rstrip("/") or HUB

    async def look(self, model: str, revision: str = "") -> Published | Unknown | None:
        wanted = revision or "main"
        stored, age = self._stored(model, wanted)
        if stored and age < _FRESH:
            return stored
        found = await self._answer(self._limit, lambda pool: self._published(pool, model, wanted))
        if not isinstance(found, Published):
            return stored if found is None else found
        # A full disk is no reason to end a plan.
        path = self._file(found.model, found.revision)
        with suppress(OSError):
            private_folder(self._root)
            write(path, json.dumps({"at": self._clock.now(), **asdict(found)}).encode(), sync=False)
        return found

    async def headers(self, model: str, revision: str = "") -> str | Unknown | None:
        """The listing of the model in the form of `remote.staging`: files, configuration, index, headers of a few
        weight files."""
        path, before, age = self._file(model, revision or "main").with_suffix(".listing"), "", _FRESH
        with suppress(OSError, ValueError):
            first, _, before = path.read_text(encoding="utf-8").partition("\n")
            named, _, at = first.rpartition(" ")
            age, before = abs(self._clock.now() - float(at)), before if named == model else ""
        if before and age < _FRESH:
            return before
        text = await self._answer(_HEADERS, lambda pool: self._listing(pool, model, revision or "main"))
        if not isinstance(text, str):
            return (before or None) if text is None else text
        with suppress(OSError):
            private_folder(self._root)
            write(path, f"{model} {self._clock.now()}\n{text}".encode(), sync=False)
        return text

    async def _answer(
        self, limit: float, ask: Callable[[httpcore.AsyncConnectionPool], Awaitable[T]]
    ) -> T | Unknown | None:
        """Unknown with the reason if the hub refuses or its answer cannot be used; None if it cannot be reached within
        `limit` seconds."""
        try:
            async with (
                asyncio.timeout(limit),
                httpcore.AsyncConnectionPool(ssl_context=tls_context(self._hub_url)) as pool,
            ):
                return await ask(pool)
        except _Refused as refused:
            return Unknown(refused.url, _why(refused.status))
        except (ValueError, httpcore.UnsupportedProtocol) as error:
            return Unknown(self._hub_url, f"the hub's answer cannot be used: {str(error)[:140]}")
        except _UNREACHED:
            return None

    async def _published(self, pool: httpcore.AsyncConnectionPool, model: str, revision: str) -> Published:
        name, at = quote(model), quote(revision, safe="")
        sizes = dict(_sizes(await self._tree(pool, f"{self._hub_url}/api/models/{name}/tree/{at}?recursive=1")))
        config = b""
        if "config.json" in sizes:
            config, _ = await self._get(pool, f"{self._hub_url}/{name}/resolve/{at}/config.json")
        return Published(model, revision, config.decode("utf-8", "replace"), _weights(sizes))

    async def _listing(self, pool: httpcore.AsyncConnectionPool, model: str, revision: str) -> str:
        name, at = quote(model), quote(revision, safe="")
        files = dict(_sizes(await self._tree(pool, f"{self._hub_url}/api/models/{name}/tree/{at}?recursive=1")))

        async def get(path: str, start: int, count: int) -> bytes:
            ranged = {"Range": f"bytes={start}-{start + count - 1}"}
            body, _ = await self._get(pool, f"{self._hub_url}/{name}/resolve/{at}/{quote(path)}", ranged, start + count)
            return body

        others: bytes = b"[]"
        with suppress(_Refused):
            others, _ = await self._get(
                pool, f"{self._hub_url}/api/models?filter=base_model:quantized:{name}{_EXPANDED}"
            )
        return "\n".join((await listing(get, files, model), *quantized(others)))

    async def _tree(self, pool: httpcore.AsyncConnectionPool, url: str) -> list[Any]:
        """All pages of a listing. Raises ValueError for one that is longer than any of a model."""
        found: list[Any] = []
        left = _MOST_LISTED
        for _ in range(_MOST_PAGES):
            body, link = await self._get(pool, url)
            left -= len(body)
            if left < 0:
                raise ValueError(f"a list of files of more than {_MOST_LISTED >> 20} MiB")
            page = read_json(body)
            found += page if isinstance(page, list) else []
            if not (more := _NEXT.search(link)):
                break
            url = urljoin(url, more[1])
        return found

    async def _get(
        self, pool: httpcore.AsyncConnectionPool, url: str, ranged: Mapping[str, str] | None = None, most: int = 0
    ) -> tuple[bytes, str]:
        """Body and Link header. The token goes to the hub's own host and scheme only. Raises _Refused.

        ranged: a Range header whose last byte is `most`. A server that ignores it sends the body from byte 0, and the
        part is cut out of that.
        """
        for _ in range(_MOST_HOPS + 1):
            key = {"Authorization": f"Bearer {self._token.reveal()}"} if self._token and self.owns(url) else {}
            status, told, body = await _read(pool, url, {**key, **(ranged or {})}, most)
            if status not in _MOVED or "location" not in told:
                break
            url = urljoin(url, told["location"])
        if status == _OK and ranged:
            body = body[int(ranged["Range"].removeprefix("bytes=").partition("-")[0]) : most]
        elif status not in (_OK, _PART):
            raise _Refused(url, status)
        return body, told.get("link", "")

    def owns(self, url: str) -> bool:
        """True for a URL of the hub itself: the same host, port and scheme. A token never leaves it, nor its TLS."""
        return urlsplit(url)[:2] == urlsplit(self._hub_url)[:2]

    def _file(self, model: str, revision: str) -> Path:
        return self._root / re.sub(r"[^A-Za-z0-9._@-]", "-", f"{model.replace('/', '--')}@{revision}.json")

    def _stored(self, model: str, revision: str) -> tuple[Published | None, float]:
        """The stored answer and its age in seconds; nothing for a file that is not ours."""
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            data = read_json(self._file(model, revision).read_bytes())
            age = self._clock.now() - float(data.pop("at"))
            found = Published(**data)
            if (found.model, found.revision) == (model, revision):
                return found, abs(age)
        return None, 0.0


async def _read(
    pool: httpcore.AsyncConnectionPool, url: str, headers: Mapping[str, str], most: int = 0
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers with lower-case names, body up to `most`. Raises ValueError for one longer than any of use."""
    timeout = {"connect": 3.0, "read": 5.0, "write": 5.0, "pool": 5.0}
    body = bytearray()
    sent: list[tuple[str | bytes, str | bytes]] = list(headers.items())
    async with pool.stream("GET", url, headers=sent, extensions={"timeout": timeout}) as response:
        async for chunk in response.aiter_stream():
            body += chunk
            if most and len(body) >= most:
                break
            if len(body) > _MOST_BYTES:
                page = url.partition("?")[0][-80:]
                raise ValueError(f"{page} is longer than {_MOST_BYTES >> 20} MiB and was not read")
    return response.status, plain_headers(response), bytes(body)


def _sizes(tree: Sequence[Any]) -> Iterator[tuple[str, int]]:
    for entry in tree:
        path, size = (entry.get("path"), entry.get("size")) if isinstance(entry, Mapping) else (None, None)
        if isinstance(path, str) and isinstance(size, int) and entry.get("type", "file") == "file":
            yield path, size


def _weights(sizes: Mapping[str, int]) -> int:
    for pattern in _LOADED:
        if found := [size for path, size in sizes.items() if re.fullmatch(pattern, path)]:
            return sum(found)
    return 0


def _why(status: int) -> str:
    if status in _NO_RIGHTS:
        return "the hub wants to know who asks: export HF_TOKEN, and accept the model's terms on its page"
    return "the hub has no such model or revision" if status == _NOT_FOUND else f"the hub answered HTTP {status}"

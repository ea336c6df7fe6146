"""The model that a body names, however it is cut into pieces and whatever else is in it."""

import json

from sparkwright.gateway.model_scan import ModelScan, scan_for

BOUNDARY = "multipart/form-data; boundary=b-1"
FORM = (
    b'--b-1\r\nContent-Disposition: form-data; name="file"; filename="model"\r\nContent-Type: audio/wav\r\n\r\n'
    + bytes(range(256))
    + b'\r\n--b-1\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper\r\n--b-1--\r\n'
)
BODIES = (
    ({"messages": [{"role": "user", "content": 'my "model": "x" \\'}], "model": 'a"é'}, 'a"é'),
    ({"tools": {"model": "z", "q": ["model"]}, "model": "c", "x": 1}, "c"),
    ({"input": [[1, 2, 3], "model"], "model": "e"}, "e"),
    ({"model": 3, "x": "y"}, ""),
    ({"m": {"model": "q"}}, ""),
    ([{"model": "x"}], ""),
)


def scanned(body: bytes, step: int, kind: str = "application/json") -> ModelScan:
    scan = scan_for(kind)
    for at in range(0, len(body), step):
        scan.feed(body[at : at + step])
    return scan


def test_only_the_top_level_names_it() -> None:
    """Guards the route against text of the client's, and against pieces that end anywhere."""
    for body, name in BODIES:
        for ascii_only in (True, False):
            text = json.dumps(body, ensure_ascii=ascii_only).encode()
            for step in (1, 2, 3, 7, len(text)):
                assert scanned(text, step).name == name, (body, step)


def test_a_form_has_it_in_a_field() -> None:
    """Guards transcriptions, whose file may hold anything before the field comes."""
    for step in (1, 2, 3, 100, len(FORM)):
        assert scanned(FORM, step, BOUNDARY).name == "whisper", step


def test_what_is_no_request_ends_the_search() -> None:
    """Guards against bodies made to be costly: nothing is kept of them, and none is an error."""
    for body in (b"[[[[", b'"x"', b'{"a":' + b"[" * 1000, b"}", b"", b"\xff\xfe", b'{"model": "\\ud800"}', b"{]"):
        scan = scanned(body, 3)
        assert scan.name in ("", "\ud800"), body
    endless = scan_for(BOUNDARY)
    endless.feed(b'--b-1\r\nContent-Disposition: form-data; name="model"\r\n\r\n' + b"x" * 5000)
    assert endless.done and endless.name == ""

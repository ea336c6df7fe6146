"""The answers of the gateway itself, in the shape that OpenAI's clients understand."""

import json
from dataclasses import dataclass

from sparkwright.domain.units import MIB

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """retry_after: whole seconds, 0 for none."""

    status: int
    kind: str
    code: str
    message: str
    retry_after: int = 0

    @property
    def body(self) -> str:
        error = {"message": self.message, "type": self.kind, "param": None, "code": self.code}
        return json.dumps({"error": error}, ensure_ascii=False)

    @property
    def headers(self) -> dict[str, str]:
        """Without the length. A client that was refused need not send the rest of its body."""
        found = {"Content-Type": JSON, "Cache-Control": "no-store", "Access-Control-Allow-Origin": "*"}
        if self.retry_after:
            found["Retry-After"] = str(self.retry_after)
        if self.status == 401:
            found["WWW-Authenticate"] = "Bearer"
        return found


def no_key(shown: bool) -> Answer:
    problem = "This API key is not known here or was revoked." if shown else "No API key was given."
    how = "Send `Authorization: Bearer KEY`; `sparkwright keys add NAME` makes one."
    return Answer(401, "invalid_request_error", "invalid_api_key", f"{problem} {how}")


def no_such_path() -> Answer:
    return Answer(404, "invalid_request_error", "unknown_url", "This address serves the OpenAI API below /v1/ only.")


def no_such_route(asked: str) -> Answer:
    """asked: method and path."""
    problem = f"{asked[:100]} is no route of this deployment."
    return Answer(
        404, "invalid_request_error", "unknown_url", f"{problem} `serving.door.routes` in its recipe adds one."
    )


def too_large(limit: int) -> Answer:
    message = f"The request's body is larger than {limit / MIB:g} MiB (serving.door.body_limit)."
    return Answer(413, "invalid_request_error", "request_too_large", message)


def away(code: str, message: str, retry_after: int) -> Answer:
    return Answer(503, "service_unavailable", code, message, retry_after)


def keys_unreadable() -> Answer:
    message = "The gateway cannot read its keys file: nobody is let in until it can. `sparkwright status` shows why."
    return away("keys_unreadable", message, 5)


def gateway_broken() -> Answer:
    """The answer of Caddy alone while the key check is away: it cannot check keys, so nobody gets in."""
    return away("door_unavailable", "The gateway cannot check keys at the moment; it is being started again.", 5)


def engine_silent() -> Answer:
    """The answer of Caddy alone while neither the engine nor the key check answers."""
    return away("engine_unavailable", "The engine does not answer at the moment.", 5)

"""The sentence that an owner reads on the phone, and the form in which each service takes it."""

import json
from dataclasses import asdict
from email.message import EmailMessage
from email.utils import formatdate

from sparkwright.domain.codec import encodable
from sparkwright.domain.incident import News
from sparkwright.domain.notify import Form, Receiver
from sparkwright.domain.units import duration

SCHEMA = 1
TEST = "test"
MAX_SENTENCE = 700  # characters; Discord takes 2,000, and a phone shows 200
_PRIORITY = {"given-up": 5, "opened": 4, "waiting": 4, "degraded": 3}  # ntfy's, 1 to 5
_NO_MENTION = "\N{ZERO WIDTH SPACE}"


def sentence(news: News, held: int = 0) -> str:
    """One line. held: messages before this one that the rate limit kept back."""
    name = f"{'[simulated] ' if news.simulated else ''}{news.deployment}"
    text = _one_line(f"{name} {_predicate(news)}")
    if len(text) > MAX_SENTENCE:
        text = f"{text[: MAX_SENTENCE - 3]}..."
    return f"{text} ({held} earlier message{'s' if held > 1 else ''} held back)" if held else text


def _predicate(news: News) -> str:
    if news.what == "closed" and news.away is not None and news.fault:
        word = f"{news.away_word} " if news.away_word else ""
        return f"was away for {word}{duration(news.away)}: {news.fault}; it serves again"
    if news.what == "opened":
        since = f"has been away for {duration(news.away)}" if news.away else "is away"
        return f"{since}: {news.text}; it is being started again"
    told = {
        "closed": "is back",
        "given-up": "is down and needs you",
        "degraded": "serves, but",
        "recovered": "is well again",
        "waiting": "is away and cannot be started yet",
        TEST: "sends a test message",
    }
    return f"{told.get(news.what, news.what)}: {news.text}"


def document(news: News) -> dict[str, object]:
    """The JSON that programs and plain webhooks get."""
    return {"schema": SCHEMA, "event": news.what, **asdict(news)}


def body_of(receiver: Receiver, news: News, text: str) -> bytes:
    """The JSON body of a POST. Nothing in the text mentions anybody, or is markup that notifies a channel."""
    match receiver.form:
        case Form.NTFY:
            topic = receiver.url.rstrip("/").rpartition("/")[2]
            title = f"{news.deployment}: {news.what}"
            found: dict[str, object] = {"topic": topic, "title": title, "message": text}
            found["priority"] = _PRIORITY.get(news.what, 3)
        case Form.DISCORD:
            found = {"content": text, "allowed_mentions": {"parse": []}}
        case Form.SLACK:
            found = {"text": text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}
        case Form.MATTERMOST:
            found = {"text": text.replace("@", f"@{_NO_MENTION}")}
        case _:
            found = {**document(news), "sentence": text}
    return encodable(json.dumps(found, ensure_ascii=False)).encode()


def mail_of(receiver: Receiver, news: News, text: str, host: str, at: float) -> bytes:
    """A message for sendmail's standard input. No line of the text can become a header."""
    mail = EmailMessage()
    mail["From"] = receiver.sender or f"sparkwright@{host or 'localhost'}"
    mail["To"] = ", ".join(receiver.to)
    mail["Subject"] = _one_line(f"{news.deployment}: {news.what}")[:120]
    mail["Date"] = formatdate(at)
    mail["Auto-Submitted"] = "auto-generated"
    more = f"\n\nsparkwright incidents show {news.incident}" if news.incident else ""
    mail.set_content(encodable(f"{text}{more}\n"))
    return bytes(mail)


def is_urgent(news: News) -> bool:
    """Nobody waits for a rate limit to hear that a person has to act."""
    return news.what == "given-up"


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())

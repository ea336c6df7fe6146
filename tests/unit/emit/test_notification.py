"""The sentences that an owner reads, and that nothing in them becomes a mention, a header or markup."""

import email
import json
from dataclasses import replace

from sparkwright.domain.incident import News
from sparkwright.domain.notify import Form, Receiver
from sparkwright.emit.notification import MAX_SENTENCE, body_of, mail_of, sentence
from unit.for_each import for_each

KILLED = "rank 1 on spark-2 was killed"
CLOSED = News("closed", f"serving again after: {KILLED}", "v4-flash", 1000.0, "ready", 3, fault=KILLED, away=16.2)
NASTY = "@everyone <!channel> <@U1> \r\nBcc: a@b.c\n\x1b[31m \ud800 `code`"


def test_an_outage_that_is_over():
    """The first line has the time it was away, the cause, and that it serves."""
    assert sentence(CLOSED) == f"v4-flash was away for 16 s: {KILLED}; it serves again"


@for_each(
    "news, expected",
    [
        (
            replace(CLOSED, what="opened", text=KILLED, away=60.0),
            "has been away for 60 s: rank 1 on spark-2 was killed",
        ),
        (replace(CLOSED, what="given-up", text="4 faults"), "v4-flash is down and needs you: 4 faults"),
        (replace(CLOSED, what="degraded", text="it is hot"), "v4-flash serves, but: it is hot"),
        (replace(CLOSED, fault="", away=None), "v4-flash is back: serving again after"),
        (replace(CLOSED, what="later", text="x"), "v4-flash later: x"),
        (replace(CLOSED, away_word="at least"), "v4-flash was away for at least 16 s: rank 1"),
        (replace(CLOSED, simulated=True), "[simulated] v4-flash was away"),
    ],
)
def test_the_other_events(news, expected):
    """Each begins with the deployment and says what it means for the owner; an unknown event is shown as it is."""
    assert expected in sentence(news)


def test_what_was_held_back_is_counted():
    """A reader knows that there was more."""
    assert sentence(CLOSED, 1).endswith("(1 earlier message held back)")
    assert sentence(CLOSED, 3).endswith("(3 earlier messages held back)")


@for_each("form", list(Form))
def test_no_text_mentions_anybody(form):
    """Log lines reach the sentence: a mention or a control character of theirs has no effect, and it stays bounded."""
    news = replace(CLOSED, fault=NASTY + "x" * 9000)
    text = sentence(news)
    assert len(text) <= MAX_SENTENCE and text.isprintable()
    body = json.loads(body_of(Receiver(form, "https://ntfy.sh/topic"), news, text))
    if form is Form.SLACK:
        assert "<" not in body["text"]
    if form is Form.MATTERMOST:
        assert "@everyone" not in body["text"]
    if form is Form.DISCORD:
        assert body["allowed_mentions"] == {"parse": []} and len(body["content"]) < 2000
    if form is Form.NTFY:
        assert body["topic"] == "topic" and body["message"]


def test_mail_has_the_headers_that_we_write():
    """A deployment's text cannot add a recipient."""
    news = replace(CLOSED, fault=NASTY)
    receiver = Receiver(Form.MAIL, to=("me@example.com", "you@example.com"))
    mail = email.message_from_bytes(mail_of(receiver, news, sentence(news), "spark-1", 0.0))
    assert mail["To"] == "me@example.com, you@example.com" and mail["Bcc"] is None
    assert mail["From"] == "sparkwright@spark-1" and mail["Subject"] == "v4-flash: closed"
    assert "incidents show 3" in mail.get_payload(decode=True).decode()

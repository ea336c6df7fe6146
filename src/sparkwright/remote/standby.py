"""Files of the standby's role on head and standby."""

from sparkwright.domain.command import Command
from sparkwright.domain.standby import FOLDER, RETURN_FILE, SECOND, TERM_FILE
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__, FOLDER=FOLDER, TERM=TERM_FILE, RETURN=RETURN_FILE, SECOND=SECOND)


def is_unused(state: str) -> Command:
    """Prints `unused` if the role is there and no deployment is behind a gateway any more."""
    return script(_sh("unused"), state)


def await_votes(home: str, seconds: float) -> Command:
    """Exit 0 once the node has its votes, 1 after so many seconds: the last lines of its log."""
    return script(_sh("votes"), home, f"{seconds:.0f}", timeout=seconds + 15.0)


def give_back(home: str) -> Command:
    """The standby stops to serve, if it does, and leaves the votes to the head."""
    return script(_sh("give_back"), home, changes="standby: give the gateway back to the head")


def lost_votes(state: str) -> Command:
    """Prints `lost` on a head that has the role, and whose program for it runs, but has not the votes."""
    return script(_sh("lost"), state)


def mark_folder(home: str, name: str, text: str) -> Command:
    """A file with that text, none for ''; the last report of a deployment goes with it."""
    return script(_sh("mark"), home, name, text, changes=f"standby: {home}")


def note_second(home: str, url: str) -> Command:
    """The deployment's second URL on the head; '' takes it away. Prints `role` if the head has a standby's role."""
    return script(_sh("second"), home, url, changes="gateway: note the second URL")

"""Paths from a home directory."""

from sparkwright.domain.homes import expand_home
from unit.for_each import for_each


@for_each(
    "path, wanted",
    [
        ("~", "/home/ann"),
        ("~/models", "/home/ann/models"),
        ("~bob/models", "~bob/models"),
        ("/srv/~/models", "/srv/~/models"),
        ("models", "models"),
        ("", ""),
    ],
)
def test_only_the_own_home_is_put_in(path: str, wanted: str) -> None:
    """Guards another user's home, which nobody here can know."""
    assert expand_home(path, "/home/ann") == wanted

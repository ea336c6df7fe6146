"""What all rules have: a code, and words about it."""

from typing import Protocol

from sparkwright.domain.finding import Severity


class Coded(Protocol):
    """A module with these names. Its docstring has the headings Detects, Why, Evidence, Remedy, References."""

    @property
    def CODE(self) -> str: ...

    @property
    def STATUS(self) -> str: ...

    @property
    def SEVERITY(self) -> Severity: ...

    @property
    def TITLE(self) -> str: ...

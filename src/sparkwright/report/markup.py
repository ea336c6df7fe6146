"""HTML from values: whatever is no markup by type is escaped, so that no model's name can become a tag."""

from html import escape


class Html(str):
    """Markup. Only this module and the shipped assets make it."""

    __slots__ = ()


_VOID = ("meta", "br", "input", "link")


def html_tag(name: str, /, *inside: str, **attributes: str | bool | None) -> Html:
    """One element. `class_` and `data_plot` become `class` and `data-plot`; None and False leave an attribute out."""
    given = "".join(_attribute(key, value) for key, value in attributes.items() if value not in (None, False))
    if name in _VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{join_html(*inside)}</{name}>")


def join_html(*parts: str) -> Html:
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts))


def _attribute(key: str, value: str | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'

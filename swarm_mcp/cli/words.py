"""Small pieces of text that many commands print: numbers with nouns, optional clauses, spans, costs, excerpts."""

from __future__ import annotations


def count(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 lock``, ``2 locks``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}s"


def clause(form: str, value: object) -> str:
    """Return `form` with `value` in place of its ``{}``, or an empty text if the value is empty or None."""
    if not value:
        return ""
    return form.replace("{}", str(value))


def span(seconds: float) -> str:
    """Return a running time in short form: ``4s``, ``1m05s``."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m{whole % 60:02d}s"


def dollars(cost: float | None) -> str:
    """Return a cost in US dollars; ``unknown`` for None."""
    if cost is None:
        return "unknown"
    return f"${cost:.4f}"


def excerpt(value: object, longest: int) -> str:
    """Return `value` on one line of at most `longest` characters, with an ellipsis if it is cut."""
    text = " ".join(str(value).split())
    if len(text) <= longest:
        return text
    return text[: longest - 1] + "…"

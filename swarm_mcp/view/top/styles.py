"""The styles: the terminal's own colours, beside attributes with the same meaning for a terminal without colours."""

from __future__ import annotations

from rich.style import Style

STYLES = {
    "": Style(),
    "good": Style(color="green"),
    "busy": Style(color="yellow"),
    "bad": Style(color="red", bold=True),
    "held": Style(color="magenta"),
    "faint": Style(dim=True),
    "name": Style(color="cyan"),
    "own": Style(bold=True),
    "heading": Style(bold=True, underline=True),
    "cursor": Style(reverse=True),
}
# The meaning of a word in a column of states.
MEANINGS = {
    "working": "good", "live": "good", "done": "good",
    "claimed": "busy", "in_progress": "busy", "running": "busy", "starting": "busy", "queued": "busy", "waits": "busy",
    "failed": "bad", "stale": "bad", "abandoned": "bad",
    "blocked": "held", "approval_required": "held", "paused": "held",
    "idle": "faint", "cancelled": "faint", "open": "",
}  # fmt: skip


def style_of(name: str, text: str = "") -> Style:
    """The style called `name`; of a ``state`` the one that the first word of `text` means."""
    if name == "state":
        name = MEANINGS.get(text.strip().partition(" ")[0].rstrip(":,"), "")
    return STYLES[name]

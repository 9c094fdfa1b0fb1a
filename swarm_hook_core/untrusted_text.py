"""Words of others on their way to a model or a terminal: labels, notes, file names, titles, reasons, messages.

Whoever can write into the store, or name a file, chooses them. Shown, they are short, move no cursor, hide nothing,
and stand in quotes wherever they could be taken for words of ours.
"""

from swarm_hook_core import labels

LABEL = labels.LONGEST  # characters
NOTE = 200  # of a note, a reason or a title that are shown
NAME = 1000  # of the path of a file
COMMAND = 500  # of a command line
TEXT = 4000  # of a message

# Not printable by Python's reckoning, yet harmless and part of ordinary text: spaces of other widths and
# the joiners that Indic scripts and emoji need. The rest is control characters, marks that reverse the
# direction of reading, invisible ones, and code points that mean nothing.
_HARMLESS = "\u00a0\u2002\u2003\u2007\u2009\u200a\u200c\u200d\u202f\u3000"
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e"}
# The words of a label that hooks compose (``labels.compose``) and one more, the runtime, need no quotes.
_LABEL_KEYS = ("identity:", "platform:", "mode:", "role:", "origin:", "session:")


def safe(text: str) -> str:
    """`text` with everything escaped that could act on a terminal or hide in it; lines and tabs stay."""
    if text.isprintable():
        return text
    return "\n".join("\t".join(map(one_line, line.split("\t"))) for line in text.split("\n"))


def one_line(text: str) -> str:
    """`text` made `safe`, and one line: line ends and tabs escaped too."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def cut(text: str, longest: int) -> str:
    """`text` as one safe line of at most `longest` characters."""
    return _ended(one_line(text[: longest + 1]), longest)


def cut_text(text: str, longest: int = TEXT) -> str:
    """`text` made `safe`, its lines kept, of at most `longest` characters."""
    return _ended(safe(text[: longest + 1]), longest)


def quoted(text: str, longest: int = NOTE) -> str:
    """`text` in quotes, as somebody's words: one safe line of at most `longest` characters, blanks between words."""
    return _in_quotes(" ".join(text[: 4 * longest].split()), longest)


def command(line: str) -> str:
    """A command between backticks: one safe line. It may have names in it that were found on the disk."""
    return "`" + cut(line, COMMAND).replace("`", "'") + "`"


def named(name: str, longest: int = NAME) -> str:
    """The name of a file, an agent or a session: as it is where it is one plain word, else in quotes."""
    shown = cut(name, longest)
    if shown == name and " " not in name and '"' not in name and not any(space in name for space in _HARMLESS):
        return name
    return _in_quotes(name, longest)


def label(text: str) -> str:
    """A session's label: as it is where it has at most one word that hooks do not give it, else in quotes."""
    words = text[: LABEL + 1].split(" ")
    others = [word for word in words if not word.startswith(_LABEL_KEYS)]
    if len(others) <= 1 and len(text) <= LABEL and all(named(word) == word for word in words):
        return text
    return quoted(text, LABEL)


def _in_quotes(text: str, longest: int) -> str:
    # A backslash of theirs must not undo ours before a quotation mark.
    return '"' + cut(text[: longest + 1].replace("\\", "\\\\"), longest).replace('"', '\\"') + '"'


def _ended(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    return text[: longest - 1] + "…"


def _escaped(c: str) -> str:
    if c in _HARMLESS:
        return c
    code = ord(c)
    if c in _NAMED:
        return _NAMED[c]
    if code < 0x100:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"

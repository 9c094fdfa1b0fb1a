"""Words of others on their way to a model or a terminal: labels, notes, file names, titles, reasons, messages.

Whoever can write into the store, or name a file, chooses them. Shown, they are short, move no cursor, hide nothing,
and stand in quotes wherever they could be taken for words of ours.
"""

# Labels: a session's name as one line of words.
#
# ``[machine:<name>] [identity:<id>] <runtime> platform:<platform> [mode:gateway] [role:<name>] origin:<runtime>
# [session:<short>]``, single blanks between; a machine only if it is another one than this. Ids that start within a
# minute of each other may share the short session, so it identifies no session. ``naming`` makes the names that people
# and models read.

LONGEST = 200  # characters; a longer label is cut where a session registers, and again where it is shown
_KEPT = ("identity:", "session:", "run:", "mode:", "role:", "machine:")  # words that decide about meetings and rights


def bounded(label: str) -> str:
    """Return `label` with at most LONGEST characters; the words that identify the session are kept first."""
    if len(label) <= LONGEST:
        return label
    words, left, chosen = label.split(), LONGEST, set()
    for place in sorted(range(len(words)), key=lambda place: not words[place].startswith(_KEPT)):
        if len(words[place]) < left:
            chosen.add(place)
            left -= len(words[place]) + 1
    return " ".join(words[place] for place in sorted(chosen)) or label[:LONGEST]


def short_session(session_id: str) -> str:
    """The first eight letters and digits of a session id."""
    return "".join(c for c in session_id if c.isascii() and c.isalnum())[:8]


def compose(
    runtime: str,
    session_id: str,
    identity: str = "",
    mode: str = "worker",
    role: str = "",
    override: str = "",
    platform: str = "cli",
) -> str:
    """The label of a session. An `override` replaces all but the identity and session words."""
    short = short_session(session_id)
    if override:
        words = override.split()
        if identity and not any(word.startswith("identity:") for word in words):
            words.insert(0, f"identity:{identity}")
        if short and not any(word.startswith("session:") for word in words):
            words.append(f"session:{short}")
        return " ".join(words)
    if identity:
        words = [f"identity:{identity}"]
    else:
        words = []
    words += [runtime, f"platform:{platform}"]
    if mode == "gateway":
        words.append("mode:gateway")
    if role:
        words.append(f"role:{role}")
    words.append(f"origin:{runtime}")
    if short:
        words.append(f"session:{short}")
    return " ".join(words)


def merged(label: str, more: str) -> str:
    """The words of `label`, then those of `more` that it says nothing about; the session is that of `more`."""
    words = [word for word in label.split() if not (word.startswith("session:") and token(more, "session"))]
    keys = {word.partition(":")[0] for word in words}
    return " ".join([*words, *(word for word in more.split() if word.partition(":")[0] not in keys)])


def token(label: str, key: str) -> str:
    """Return the value of the first ``key:value`` word of `label`; empty if it has no such word."""
    prefix = key + ":"
    for word in (label or "").split():
        if word.startswith(prefix):
            return word[len(prefix) :]
    return ""


def same_circle(mine: str, theirs: str) -> bool:
    """Return True if a session of identity `mine` may see names and notes of identity `theirs`."""
    return not mine or not theirs or mine == theirs


LABEL = LONGEST  # characters
NOTE = 200  # of a note, a reason or a title that are shown
NAME = 1000  # of the path of a file
COMMAND = 500  # of a command line
TEXT = 4000  # of a message

# Not printable by Python's reckoning, yet harmless and part of ordinary text: spaces of other widths and
# the joiners that Indic scripts and emoji need. The rest is control characters, marks that reverse the
# direction of reading, invisible ones, and code points that mean nothing.
_HARMLESS = "\u00a0\u2002\u2003\u2007\u2009\u200a\u200c\u200d\u202f\u3000"
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e"}
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+:=@%,")  # in words of a shell
# The words of a label that hooks compose (`compose`) and one more, the runtime, need no quotes.
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


def as_word(word: str) -> str:
    """Return `word` quoted for a shell; control characters as escapes that bash, zsh and ksh know."""
    if word and not set(word) - _SAFE:
        return word
    if one_line(word) != word:
        data = word.encode("utf-8", "surrogateescape")
        return "$'" + "".join(chr(b) if 32 <= b < 127 and b not in b"'\\" else f"\\{b:03o}" for b in data) + "'"
    return "'" + word.replace("'", "'\"'\"'") + "'"


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

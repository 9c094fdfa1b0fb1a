"""Labels: a session's name as one line of words.

``[machine:<name>] [identity:<id>] <runtime> platform:<platform> [mode:gateway] [role:<name>] origin:<runtime>
[session:<short>]``, single blanks between; a machine only if it is another one than this. Ids that start within a
minute of each other may share the short session, so it identifies no session. ``naming`` makes the names that people
and models read.
"""

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

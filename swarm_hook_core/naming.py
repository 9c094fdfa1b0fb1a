"""The name of a session for people and models: in denials, notices, tables, pages.

``claude-code 5f0c2f6e``, ``you (this terminal)``, ``a terminal 8e3c69bd``, ``make tidy (hold)``, ``worker codex
12ab34cd``. The label itself, with its words for programs, is for ``--json`` alone. The number in a name is part of the
label or begins the instance id, so every command that takes a session takes the name's number.

Denials and notices load this; a check that lets a call pass does not. Spans of time are in ``wording``.
"""

from __future__ import annotations

from typing import Any

from swarm_hook_core.lookup import HOLD, TERMINAL
from swarm_hook_core.untrusted_text import named, quoted, short_session, token

UNNAMED = "a session of another identity"
SHORT = 8  # characters of an id
LONGEST_WORDS = 40  # characters of the chosen words of a name
# Values that stand for a runtime if there is no agent client.
DETACHED, RUN, SERVER = "detached", "run", "mcp"
MACHINE = "machine"  # the label's word for the machine of a session, if it is another one
REMOTE = "team"  # the runtime of sessions on other machines


def session_name(
    runtime: str | None,
    session_id: str | None,
    label: str | None = "",
    is_own: bool = False,
    instance_id: str = "",
) -> str:
    """Return the name of a session. Facts that are empty or None are read from its `label`, if it has them.

    `is_own`: the reader is that session. `instance_id` tells sessions apart that have no id from their client. A
    session on another machine has the machine in its label: ``codex 5f0c2f6e on laptop-3fa9c1``.
    """
    label = label or ""
    machine = token(label, MACHINE)
    if machine:
        where = f" on {named(machine, LONGEST_WORDS)}"
    else:
        where = ""
    if runtime == REMOTE:  # the label has the runtime that it has there
        runtime = session_id = ""
    return _name_here(runtime, session_id, label, is_own, instance_id) + where


def _name_here(runtime: str | None, session_id: str | None, label: str, is_own: bool, instance_id: str) -> str:
    origin = token(label, "origin")
    if runtime and runtime not in (RUN, SERVER):
        kind = runtime
    else:
        kind = origin
    if kind == DETACHED or (kind == TERMINAL and DETACHED in label.split()):
        return f"{DETACHED} {_short(instance_id)}".rstrip()
    if kind == TERMINAL:
        if is_own:
            return "you (this terminal)"
        return f"a terminal {_short(instance_id)}".rstrip()
    if kind == HOLD:
        name = f"{_command(_chosen(label, HOLD)) or 'a command'} (hold)"
    elif token(label, "run") or runtime == RUN:
        number = token(label, "run") or session_id or instance_id
        name = " ".join(filter(None, ("worker", named(kind, LONGEST_WORDS) if kind else "", _short(number))))
    else:
        name = _client(runtime or "", session_id or "", label, kind, instance_id)
    if is_own:
        return f"you ({name})"
    return name


def holder_name(label: str | None, instance_id: str, is_own: bool = False) -> str:
    """Return the name of a session by its label and instance id, as locks have them."""
    return session_name("", "", label, is_own, instance_id)


def agent_name(agent: str) -> str:
    """One of a session's agents: its id, or the command that holds locks while it runs."""
    parts = agent.split(":")
    if parts[0] == HOLD and len(parts) > 1 and parts[1].isdigit():
        return f"a command (hold, process {parts[1]})"
    return f"agent {named(agent)}"


def _client(runtime: str, session_id: str, label: str, kind: str, instance_id: str) -> str:
    words = _chosen(label, kind)
    if words:
        if len(words) == 1:
            first = named(words[0], LONGEST_WORDS)
        else:
            first = quoted(" ".join(words), LONGEST_WORDS)
    else:
        first = named(kind or token(label, "provider") or token(label, "role") or "session", LONGEST_WORDS)
    has_own_id = session_id and runtime not in ("", SERVER)
    number = token(label, "session") or (short_session(session_id) if has_own_id else "")
    return f"{first} {_short(instance_id if instance_id and _is_time(number) else number or instance_id)}".rstrip()


def _is_time(number: str) -> bool:
    """Return True if this beginning of an id may be a time: a date, a UUID of version 7, or OpenCode's ``ses_<time>``.

    Sessions may share it.
    """
    return number.isdigit() or (number[:2] == "01" and number[2:3] in tuple("89abcdef")) or number[:3] == "ses"


def _chosen(label: str, kind: str) -> list[Any]:
    """Return the words of a label that a person chose: no ``key:value``, and not the runtime."""
    return [word for word in label.split() if ":" not in word[1:] and word != kind]


def _command(words: list[Any]) -> str:
    """The command of a hold: as it is where it is short and plain, else in quotes."""
    text = " ".join(words)
    if len(words) <= 3 and len(text) <= LONGEST_WORDS and all(named(word) == word for word in words):
        return text
    return quoted(text, LONGEST_WORDS)


def _short(text: str) -> str:
    if text:
        return named(text[:SHORT])
    return ""

"""Words for a session or a subagent that starts, and for a session that the coordinator does not know."""

import os
from typing import Any

from swarm_hook_core import DISTRIBUTION, __version__
from swarm_hook_core.coordinator import chosen_command, command
from swarm_hook_core.labels import token
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.naming import holder_name
from swarm_hook_core.state import local_store, store_path
from swarm_hook_core.untrusted_text import LABEL, NAME, NOTE, cut, named

LONGEST_ENTRY = LABEL + NAME + NOTE  # characters about one peer or lock
MENDING = "Run `swarm-mcp doctor` in a terminal to see why and how to mend it."
INSTALLING = (
    f"To mend it run `pipx install {DISTRIBUTION}` or `uv tool install {DISTRIBUTION}` in a terminal (not `swarm-mcp`,"
    " which is another program on the package index), then start a new session."
)
FETCHING = (
    f"It is now fetched in the background: release {__version__} of `{DISTRIBUTION}`, from the package index, by uv."
    " Sessions that start once it is there can lock files and are seen by others. To have nothing fetched, set"
    " SWARM_UVX=off."
)


def unregistered(why: str, is_fetched: bool = False) -> str:
    """Return the words for user and model about a session that the coordinator does not know, and its checks.

    `is_fetched`: the command is being fetched now.
    """
    words = f"swarm: this session could not be registered ({why})."
    if not _is_store_at_hand():
        return f"{words} File locks are NOT enforced for it. {MENDING}"
    checked = "What its file tools and shell commands write is checked against the locks of others all the same"
    if is_fetched:
        mend = FETCHING
    elif command():
        mend = MENDING
    else:
        mend = INSTALLING
    return f"{words} {checked}; it can lock nothing itself, and others do not see it. {mend}"


def _is_store_at_hand() -> bool:
    """Return True if checks can read the locks without the coordinator, or could as soon as there are any."""
    from swarm_hook_core import faults

    try:
        file = local_store()
        if not file:
            return not chosen_command() and not os.path.lexists(store_path())
        StoreReader(file).others_hold("")
    except Exception as error:
        faults.record("store", "session_start", error)
        return False
    return True


def greeting(row: "dict[str, Any]") -> str:
    """Return the words for the model at the start of a session."""
    label, scope = str(row.get("label") or ""), named(str(row.get("scope") or ""))
    name = cut(holder_name(label, str(row["id"])).replace("`", "'"), LABEL)
    facts = ((key, token(label, key)) for key in ("identity", "role"))
    more = "".join(f", {key} {named(value, NOTE)}" for key, value in facts if value)
    lines = [f"swarm: this session is registered as `{name}`{more}, instance `{row['id']}`, scope {scope}."]
    summary = row.get("summary")
    if isinstance(summary, dict):
        peers = _listed("Other sessions here", summary.get("peers"), summary.get("peer_count"))
        locks = _listed("Locked now", summary.get("locks"), summary.get("lock_count"))
        lines.append(f"{peers or 'No other session is here now.'} {locks or 'Nothing is locked.'}")
    lines.append(
        "Every session here may write any file that no other session has locked; ordinary edits need no lock. To keep"
        " a file, folder or pattern still for longer use the swarm MCP tool lock_file (or `swarm-mcp lock FILE --note"
        " WHY`), then unlock_file; a tool that is not found yet is there in a moment: call it again. A denied call is"
        " told why and what to do: read the file again, do other work, or wait in line. The skill swarm-mcp says when"
        " to lock and when not."
    )
    return "\n".join(lines)


def subagent_greeting(agent_id: str) -> str:
    """Return the words for a subagent that starts: its id, and the use of it. Empty without an id."""
    agent = cut(agent_id, LABEL)
    if not agent:
        return ""
    return (
        f"swarm: you are agent `{agent}` of this session. What the session locks is yours to write, and its other"
        f" agents'. To keep a file from those as well, lock it for yourself: lock_file with agent_id `{agent}`, or"
        f" `swarm-mcp lock FILE --agent {agent}`. Such locks end with you, or with unlock_file."
    )


def _listed(title: str, texts: "Any", count: "Any") -> str:
    """Return `texts` of the coordinator behind a `title`; empty if their `count`, with those left out, is 0.

    They are bounded once more: it may be another implementation, or an older one.
    """
    if not count:
        return ""
    texts = texts or []
    more = f" and {count - len(texts)} more" if count > len(texts) else ""
    return f"{title}: {'; '.join(cut(text, LONGEST_ENTRY) for text in texts if isinstance(text, str))}{more}."

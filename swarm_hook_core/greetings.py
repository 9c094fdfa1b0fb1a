"""Words for a session or a subagent that starts, and for a session that the coordinator does not know."""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core import DISTRIBUTION, __version__, state
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.coordinator import chosen_command, command
from swarm_hook_core.environment import first_set, is_word, nearest_file
from swarm_hook_core.hooks import answer
from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.naming import holder_name
from swarm_hook_core.process import run
from swarm_hook_core.state import local_store, name_of, read_private, remove_older, state_dir, store_path, write_private
from swarm_hook_core.untrusted_text import LABEL, NAME, NOTE, cut, named, token

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

    try:
        file = local_store()
        if not file:
            return not chosen_command() and not os.path.lexists(store_path())
        StoreReader(file).others_hold("")
    except Exception as error:
        state.record("store", "session_start", error)
        return False
    return True


def greeting(row: dict[str, Any]) -> str:
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


# The words after the coordinator ran a hook itself and was killed over it, by its own time limit for one.
#
# No second attempt is made: the payload is gone with it, and so is the time. A session that is not registered by now
# will be in passing, by its first check.

OUT_OF_TIME = 14  # SIGALRM; the process sets it as it begins


def tell_killed(config: RuntimeConfig, event: str, status: int) -> int:
    """Record a coordinator that ended with exit `status` as a shell has it; a session's start says so as well."""
    try:
        signal = status - 128
        if signal == OUT_OF_TIME:
            why = "no answer within its time"
        else:
            why = f"swarm-mcp was killed by signal {signal}"
        state.record(config.runtime_name, event, why)
        if event == "session_start":
            words = unregistered(why)
            answer(config.dialect.words("SessionStart", words, words))
    except Exception as error:
        state.record(config.runtime_name, event, error)
    return 0


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


def _listed(title: str, texts: Any, count: Any) -> str:
    """Return `texts` of the coordinator behind a `title`; empty if their `count`, with those left out, is 0.

    They are bounded once more: it may be another implementation, or an older one.
    """
    if not count:
        return ""
    texts = texts or []
    more = f" and {count - len(texts)} more" if count > len(texts) else ""
    return f"{title}: {'; '.join(cut(text, LONGEST_ENTRY) for text in texts if isinstance(text, str))}{more}."


# The work tracker that a person has set for this session, and making it known to peers.
#
# PFX is the runtime's prefix. The first that is set: ``SWARM_PFX_WORK_TRACKER``, ``SWARM_WORK_TRACKER`` (JSON, or
# ``provider:mcp-server``); ``SWARM_PFX_WORK_TRACKER_PROVIDER`` or ``SWARM_WORK_TRACKER_PROVIDER`` with their parts;
# the nearest ``.swarm-work-tracker`` or ``.swarm-work-tracker.json`` from the session's folder up to its scope.

FILES = (".swarm-work-tracker", ".swarm-work-tracker.json")
PARTS = ("team", "project", "repo", "workspace", "board", "url", "default_state", "component")
SECONDS = 1.0


def configured(prefix: str, cwd: str, top: str) -> dict[str, Any]:
    """``{provider, [mcp, ...]}`` of a session in `cwd`, looked for in files up to folder `top`; empty for none."""
    for text in (first_set(f"SWARM_{prefix}_WORK_TRACKER"), first_set("SWARM_WORK_TRACKER")):
        if text:
            return parsed(text)
    return _in_parts(prefix) or parsed(nearest_file(cwd, top, *FILES))


def publish(argv: list[str], row: dict[str, Any], identity: str, tracker: dict[str, Any]) -> str:
    """Set `tracker` for an identity, as instance `row`; why that failed, empty where it did not."""
    if row.get("scope"):
        place = ["--scope", str(row["scope"])]
    else:
        place = []
    words = ["kv", "set", f"config/work_tracker/{identity}", dumps(tracker), "--as", row["id"], *place]
    done = run([*argv, *words], SECONDS)
    if done.code == 0:
        return ""
    return done.stderr.strip()[:240] or f"swarm-mcp kv set exited with {done.code}"


def parsed(text: str) -> dict[str, Any]:
    """A tracker written as JSON or as ``provider[:mcp-server]``; empty where it is neither."""
    text = text.strip()
    if text.startswith("{"):
        try:
            value = loads(text)
        except (ValueError, RecursionError):  # not JSON after all
            return {}
        if isinstance(value, dict) and isinstance(value.get("provider"), str) and is_word(value["provider"]):
            return value
        return {}
    provider, _, server = (part.strip() for part in text.partition(":"))
    if not is_word(provider):
        return {}
    if server:
        return {"provider": provider, "mcp": server}
    return {"provider": provider}


def _in_parts(prefix: str) -> dict[str, Any]:
    for start in (f"SWARM_{prefix}_WORK_TRACKER_", "SWARM_WORK_TRACKER_"):
        provider = first_set(start + "PROVIDER")
        if is_word(provider):
            found = {"provider": provider, "mcp": first_set(start + "MCP", start + "MCP_SERVER")}
            found.update((part, first_set(start + part.upper())) for part in PARTS)
            return {name: value for name, value in found.items() if value}
    return {}


# The first words of each session's last prompt, for people who look on: the page shows them as the session's work.
#
# <state folder>/swarm-prompts/<runtime>.<session>
#
# Each file is readable by this user alone. It goes with its session, or with the cleanup a day after its last prompt.

LONGEST = 120  # characters
DAY_SECONDS = 86400
_FOLDER = "swarm-prompts"


def note(runtime: str, session_id: str, prompt: str) -> None:
    """Keep the first words of a prompt in place of those before. Raises OSError."""
    words = " ".join(prompt[: 8 * LONGEST].split())[:LONGEST]
    write_private(_path(runtime, session_id), words)


def prune(now: float) -> None:
    """Remove words that are older than a day; `now` in Unix seconds."""
    remove_older(os.path.join(state_dir(), _FOLDER), now - DAY_SECONDS)


def kept() -> frozenset[str]:
    """Return the names of all kept files; see `name_in`."""
    try:
        return frozenset(os.listdir(os.path.join(state_dir(), _FOLDER)))
    except OSError:  # none are kept
        return frozenset()


def name_in(runtime: str, session_id: str) -> str:
    """Return the file name of a session's words."""
    return f"{name_of(runtime)}.{name_of(session_id)}"


def first_words(runtime: str, session_id: str) -> str:
    """Return the kept words, empty if there are none."""
    try:
        return read_private(_path(runtime, session_id), 8 * LONGEST).decode("utf-8", "replace")
    except OSError:  # none are kept
        return ""


def forget(runtime: str, session_id: str) -> None:
    """Remove the words of a session that ends."""
    try:
        os.remove(_path(runtime, session_id))
    except OSError:  # none are kept
        pass


def _path(runtime: str, session_id: str) -> str:
    return os.path.join(state_dir(), _FOLDER, name_in(runtime, session_id))

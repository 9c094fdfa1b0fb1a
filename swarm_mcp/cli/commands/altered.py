"""altered: tell who holds a file that it changed while a session's call ran (hooks call this)

Of --holder, --kind (changed, replaced, created, removed), --kept (where the earlier content is, may be empty),
--at (when, Unix time) and --key (what FILE was known by before) there is one for each FILE, in the same order.
What nobody held then is left out.

example: swarm-mcp altered f --runtime codex --session-id 1 --tool Bash --holder 2 --kind changed --kept= --at 0
"""

from __future__ import annotations

import os

from swarm_mcp.cli.arguments import JSON, PATIENCE, RUNTIME, SESSION_ID, Arguments, Option, Usage, Word
from swarm_mcp.cli.output import say, show
from swarm_mcp.errors import UsageError
from swarm_mcp.scope import clean
from swarm_mcp.store import Store

KINDS = ("changed", "replaced", "created", "removed")

USAGES = (
    Usage(
        Word("FILE", "the file that changed", repeated=True),
        RUNTIME,
        SESSION_ID,
        Option("--tool NAME", "the tool that was called"),
        Option("--command TEXT", "what the shell ran"),
        Option("--holder INSTANCE", "who held FILE", repeatable=True),
        Option("--kind KIND", f"what became of it: {', '.join(KINDS)}", repeatable=True),
        Option("--kept PATH", "where the earlier content is; may be empty", repeatable=True),
        Option("--at SECONDS", "when, Unix time", repeatable=True),
        Option("--key KEY", "what FILE was known by before", repeatable=True),
        PATIENCE,
        JSON,
    ),
)


def run(args: Arguments) -> int:
    """Write the changes down."""
    runtime, session_id = args.value("--runtime"), args.value("--session-id")
    changes = _changes(args)
    with Store(busy_seconds=args.patience) as store:
        writer = store.instances.of_session(runtime, session_id)
        added = store.breaches.report(writer, args.value("--tool"), args.value("--command"), changes)
    if args.json:
        show({"ok": True, "ids": added})
    else:
        say(f"told of {len(added)} of {len(changes)} changes")
    return 0


def _changes(args) -> list[dict]:
    flags = ("--holder", "--kind", "--kept", "--at")
    columns = [args.all(flag) for flag in flags]
    for flag, values in zip(flags, columns):
        if len(values) != len(args.words):
            raise UsageError(f"{flag} is needed once for each file")
    changes = []
    keys = args.all("--key") or [""] * len(args.words)  # hooks of an earlier release give none
    if len(keys) != len(args.words):
        raise UsageError("--key is needed once for each file, or not at all")
    for word, holder, kind, kept, at, key in zip(args.words, *columns, keys):
        if kind not in KINDS:
            raise UsageError(f"--kind wants one of {', '.join(KINDS)}, not {kind[:40]!r}")
        try:
            moment = float(at)
        except ValueError:
            moment = -1.0
        if not 0 <= moment <= 10**12:
            raise UsageError(f"--at wants Unix seconds, not {at[:40]!r}")
        file = word if os.path.isabs(word) else clean(word)
        changes.append({"file": file, "holder_id": holder, "kind": kind, "kept": kept, "at": moment, "key": key})
    return changes

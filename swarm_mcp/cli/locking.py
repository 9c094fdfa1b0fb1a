"""Lock requests from the command line, and the error if one is refused."""

from __future__ import annotations

import os
from itertools import takewhile

from swarm_hook_core.environment import identity
from swarm_hook_core.lookup import process_holders
from swarm_hook_core.naming import LONGEST_WORDS, holder_name
from swarm_hook_core.paths import git_root
from swarm_hook_core.process import start_time
from swarm_hook_core.untrusted_text import named, quoted
from swarm_hook_core.wording import duration
from swarm_mcp.answers.views import seconds_since
from swarm_mcp.cli.arguments import Arguments
from swarm_mcp.cli.output import refused
from swarm_mcp.cli.words import clause, said_path
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import LockRefused, SwarmError, UsageError
from swarm_mcp.folders import current_scope, here
from swarm_mcp.locking.acquisition import refused_answer, requested
from swarm_mcp.sessions.acting import find_acting_session, session_of_person, surrounding_session
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import LockRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def lock_request(args: Arguments, store: Store, instance: Session, files: list[str], **facts: Any) -> LockRequest:
    """Return the request that the flags of `args` make. No `files` means ``--git``; `facts` as in ``LockRequest``.

    Raises SwarmError.
    """
    if args.given("--pattern") and args.given("--path"):
        raise UsageError("--pattern and --path exclude each other")
    if args.given("--shared") and args.given("--exclusive"):
        raise UsageError("--shared and --exclusive exclude each other")
    mode = "exclusive"
    if args.given("--shared"):
        mode = "shared"
    given = {
        "note": args.value("--note"),
        "mode": mode,
        "agent": args.value("--agent").strip(),
        "ttl": args.seconds_if_given("--ttl"),
        "task_id": args.value("--task") or None,
        "once": args.given("--exclusive"),
        "logical": args.given("--logical"),
    }
    as_pattern = None
    if args.given("--pattern") or args.given("--path"):
        as_pattern = args.given("--pattern")
    files = files or [repository_of(instance)]
    return requested(store, instance, files, as_pattern, args.seconds_if_given("--expect"), **{**given, **facts})


def repository_of(instance: Session) -> str:
    """Return the path that stands for a session's repository: ``.git`` at the top of its work tree.

    Raises SwarmError outside of a repository.
    """
    folder = instance.file_root or instance.directory
    mark = os.path.join(git_root(folder), ".git")
    if not os.path.lexists(mark):
        raise SwarmError(f"{folder} is not in a git repository")
    return mark


def say_refused(refusal: LockRefused, args: Arguments, store: Store, wanted: LockRequest, verb: str) -> int:
    """Print the holder of a wanted lock and the length of the queue; return exit code 1."""
    answer = refused_answer(store, refusal, wanted, "--wait SECONDS")
    waiting, active = answer["queue"]["waiting"], refusal.active
    if active.get("hidden"):
        who = "a session of another identity"
    else:
        owner = holder_name(active["owner"]["label"], active["instance_id"])
        age = "first in the queue"
        if active.get("created_at"):
            age = f"for {duration(seconds_since(active['created_at'], store.now()))}"
        who = f"{owner}, {age}"
        if active["content"]:
            who += f": {quoted(active['content'])}"
    waited = args.seconds("--wait")
    file = named(said_path(active["file"]))
    next_step = "--wait SECONDS joins the queue"
    if waited:
        next_step = f"waited {duration(waited)}; next: swarm-mcp why {file}"
    return refused(
        args, verb, answer, f"{refusal} ({file} by {who}); {clause('{} in the queue; ', waiting)}{next_step}"
    )


def process_holder(store: Store, args: Arguments, argv: list[str]) -> tuple[Session, str]:
    """Return the owner of locks that end with this process: the session around it, with this process as an agent.

    Outside of a session it is a new session without an agent, named after the command `argv`. The caller removes it.
    """
    pid, started = os.getpid(), start_time(os.getpid())
    session: Session | None
    if args.given("--person"):
        session = session_of_person(store, args)
    elif args.value("--as") or os.environ.get("SWARM_MCP_INSTANCE_ID", "").strip():
        session = find_acting_session(store, args)
    else:
        session = surrounding_session(store)
    if session:
        return session, process_holders.agent_of(pid, started, store.here)
    from swarm_mcp.store.sessions import Registration

    # The words of a command for a label, where a colon would make a fact of them: those before the first such
    program, *rest = argv
    words = " ".join([os.path.basename(program), *rest])[: 2 * LONGEST_WORDS].split()
    labels = [
        clause("identity:{}", identity("MCP")),
        *list(takewhile(lambda word: ":" not in word, words)),
        f"origin:hold pid:{pid}",
    ]
    row = store.instances.register(
        Registration(
            here(),
            label=" ".join(filter(None, labels)),
            scope=current_scope(args.value("--scope")),
            runtime=process_holders.RUNTIME,
            session_id=f"{pid}-{started}-{store.here}",
            client=(pid, started),
        )
    )
    return row, ""

"""One line for the model after a call: writes that the kernel has refused."""

from __future__ import annotations

import os
import re
import time

from swarm_hook_core.denial import Denial, Loss
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.kernel import plans
from swarm_hook_core.kernel.planning import name_of_call
from swarm_hook_core.kernel.plans import NOT_HELD, Plan
from swarm_hook_core.labels import token
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.paths import keys_for
from swarm_hook_core.state import local_store
from swarm_hook_core.wording import named_locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.core import HookCore
    from swarm_hook_core.lookup import Held

# words of programs for such an error, in lower case
MARKS = ("read-only file system", "erofs", "resource busy", "ebusy")
NAMED = 3


def words_after(core: HookCore, call: ToolCall) -> str:
    """Return the notice about a call whose plan the kernel has held, mostly "". The plan is removed.

    The plan of a command that goes on in the background stays: its shell may not have read it yet.
    """
    try:
        name = name_of_call(core.config, call)
        plan = plans.load(os.path.join(plans.folder_of(call.session_id), name))
        if plan is None:
            return ""
        if not call.goes_on:
            plans.drop(call.session_id, name)
        output = _text_of(call.response)
        words = ""
        if _is_by_us(plan, output):
            words = _words(core, call, plan, output)
        return "\n".join(filter(None, (plan.words, words)))
    except Exception as error:
        core.record_fault("kernel", error)
        return ""


def _is_by_us(plan: Plan, output: str) -> bool:
    """Return True if the command's output suggests that a held path was refused.

    Clients' own sandboxes refuse with the same words, mostly for paths elsewhere.
    """
    if NOT_HELD in output:
        return False
    return any(_may_be_ours(plan, line) for line in output.splitlines() if any(mark in line.lower() for mark in MARKS))


def _may_be_ours(plan: Plan, line: str) -> bool:
    named = re.findall(r"(?<![^\s'\"`=(\[])/[^\s'\"`:,)]+", line)
    return not named or any(path.startswith(root) for path in named for root in [*plan.roots, *plan.paths])


def _text_of(response: object, levels: int = 4) -> str:
    """Return all text in a client's report about a call's end."""
    if isinstance(response, str):
        return response
    if levels and isinstance(response, dict):
        response = list(response.values())
    if levels and isinstance(response, list):
        return "\n".join(_text_of(one, levels - 1) for one in response)
    return ""


def _words(core: HookCore, call: ToolCall, plan: Plan, output: str) -> str:
    """Return the words about the refused files, and have the refusal recorded."""
    from swarm_hook_core.lookup import Peers, Session

    paths = [path for path in plan.paths if os.path.basename(path) in output] or plan.paths
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    file = local_store()
    locks: list[Held] = []
    session = Session(plan.instance)
    if file:
        reader = StoreReader(file, core.driver)
        session = reader.session(plan.runtime, plan.session) or session
        peers = Peers(reader, plan.instance, time.time(), plan.agent)
        for path in paths[:NAMED]:
            locks += peers.over(keys_for(path, "/"))[:1]
    identity = token(session.label, "identity")
    if locks:
        what = named_locks(locks, identity, plan.instance)
    else:
        what = _named(paths[:NAMED])
    said = (
        f"swarm: the kernel kept this command from writing files that other sessions have locked: {what}{more}. Its"
        " other effects are done. Do not write these files another way: work on something else, message the holder, or"
        " wait in line for the lock, and then run it again."
    )
    if locks:
        denial = Denial(locks[0].file, None, said, loss=Loss("kernel", locks[0], "write"))
        core.note_denial(call, denial)
    return said


def _named(paths: list[str]) -> str:
    from swarm_hook_core.untrusted_text import named

    return ", ".join(map(named, paths))

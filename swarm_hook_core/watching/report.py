"""Notices about locked files that changed during a call: to the session that made the call, and to the holders."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from swarm_hook_core import environment, state, untrusted_text
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.lookup import Session
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.naming import agent_name, holder_name
from swarm_hook_core.paths import key_of, keys_for
from swarm_hook_core.process import departed, host_id
from swarm_hook_core.state import local_store
from swarm_hook_core.untrusted_text import as_word, same_circle, token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.watching.watch import Breach

TOLD_AT_ONCE = 100  # breaches named to the holders in one report
LISTED = 6  # files named in the notice

_WHAT = {"changed": "changed", "replaced": "was replaced", "created": "was created", "removed": "was removed"}


def tell(
    config: RuntimeConfig,
    session_id: str,
    breaches: list[Breach],
    coordinator: Sequence[str] | None = None,
    driver: Any = None,
) -> str:
    """Tell the holders; return the notice for the session that made the breaches. Raises any error."""
    session, standing = _standing(config, session_id, breaches, driver)
    _tell_holders(config, session_id, breaches, coordinator)
    # Released locks are left to the coordinator: it knows the time of the release.
    own_id = ""
    if session:
        own_id = session.instance_id
    if standing:
        if session:
            identity = token(session.label, "identity")
        else:
            identity = environment.identity(config.env_prefix)
        return _words(standing, identity, own_id)
    return ""


def _standing(
    config: RuntimeConfig, session_id: str, breaches: list[Breach], driver: Any
) -> tuple[Session | None, list[Breach]]:
    """Return ``(this session or None, breaches of locks that stand, of living sessions)``; all without the store."""
    try:
        file = local_store()
        if not file:
            return None, breaches
        store = StoreReader(file, driver)
        session = store.session(config.runtime_name, session_id)
        if not store.is_ours:
            return None, breaches
        named = {key for breach in breaches for key in keys_for(breach.lock, "/")}
        standing = store.locks_on(list(named)) + store.patterns_over([breach.key for breach in breaches])
        now, here = time.time(), host_id()
        alive = [one for one in standing if one.evidence is None or not departed(one.evidence, now, here)]
        held = {(one.file, one.instance_id) for one in alive}
        return session, [breach for breach in breaches if (breach.lock, breach.holder) in held]
    except Exception as error:
        state.record(config.runtime_name, "watch", error)
        return None, breaches


def _tell_holders(
    config: RuntimeConfig, session_id: str, breaches: list[Breach], coordinator: Sequence[str] | None
) -> None:
    from swarm_hook_core.coordinator import command, send

    argv = list(coordinator or command())
    if not argv:
        return
    for tool, line in dict.fromkeys((breach.tool, breach.command) for breach in breaches):
        some = [breach for breach in breaches if (breach.tool, breach.command) == (tool, line)][:TOLD_AT_ONCE]
        words = ["--tool", tool, f"--command={line}"]
        for breach in some:
            words += [f"--holder={breach.holder}", f"--kind={breach.kind}", f"--kept={breach.kept}"]
            words += [f"--at={breach.at:.3f}"]
        # links have appeared meanwhile: pass the earlier keys
        if any(key_of(breach.file) != breach.key for breach in some):
            words += [f"--key={breach.key}" for breach in some]
        try:
            send(["altered"], config.runtime_name, session_id, [*words, "--", *(one.file for one in some)], argv)
        except (OSError, ValueError) as error:  # the model is still told
            state.record(config.runtime_name, "watch", error)


def _words(breaches: list[Breach], viewer: str, own_id: str) -> str:
    """Return the notice for the model of the writing session."""
    first = breaches[0]
    is_edit = all(breach.edit for breach in breaches)
    ran = "while your last command ran" if all(breach.ended for breach in breaches) else "since your command began"
    if is_edit:
        ran = "after your last edit"
    one, command = len(breaches) == 1, untrusted_text.command(first.command)
    if one:
        lines = [f"swarm: {ran} ({command}), {_line(first, viewer, own_id)}."]
    else:
        lines = [f"swarm: {ran} ({command}), {len(breaches)} files changed that other sessions have locked:"]
        lines += [f"- {_line(breach, viewer, own_id)}" for breach in breaches[:LISTED]]
        if len(breaches) > LISTED:
            lines.append(f"- and {len(breaches) - LISTED} more")
    these, whom = "this change" if one else "these changes", _whom(breaches, viewer, own_id)
    if is_edit:
        lines.append(
            f"A program that runs after edits, perhaps a formatter, changes more than the edited file. Do not build"
            f" on {these} and do not repair anything by hand: before your next edit make it leave other files alone,"
            f" or ask the person running you. Tell {whom} what happened."
        )
    else:
        lines.append(
            f"Stop: do not build on {these}, do not repair anything by hand, and do not run such a command again."
            f" Tell {whom} what you ran."
        )
    kept = next((breach for breach in breaches if breach.kept), None)
    if kept:
        lines.append(
            f"`swarm-mcp restore {as_word(kept.file)}` brings the earlier content back, and can itself be undone."
        )
    elif first.kind == "created":
        lines.append(f"`swarm-mcp restore {as_word(first.file)} --force` removes it again.")
    else:
        lines.append(f"The earlier content was not kept: {first.why}.")
    return "\n".join(lines)


def _line(breach: Breach, viewer: str, own_id: str) -> str:
    named = untrusted_text.named
    note = f": {untrusted_text.quoted(breach.note)}" if breach.note and _may_name(breach, viewer) else ""
    who = holder_name(breach.label, breach.holder)
    if breach.agent:
        who = f"{agent_name(breach.agent)} of {'your session' if breach.holder == own_id else who}"
    if not _may_name(breach, viewer):
        who = "a session of another identity"
    return f"{named(breach.file)} {_WHAT.get(breach.kind, breach.kind)}, which {who} has locked{note}"


def _whom(breaches: list[Breach], viewer: str, own_id: str) -> str:
    known = [breach for breach in breaches if _may_name(breach, viewer)]
    holders = list(dict.fromkeys(breach.holder for breach in known if breach.holder != own_id))
    if not holders:
        if known:
            return "that agent"
        return "the person running you"
    named = ", ".join(map(untrusted_text.named, holders[:3])) + (" and others" if len(holders) > 3 else "")
    return f"the holder{'s' if len(holders) > 1 else ''} (send_message to instance {named})"


def _may_name(breach: Breach, viewer: str) -> bool:
    return same_circle(viewer, token(breach.label, "identity"))

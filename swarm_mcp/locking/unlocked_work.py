"""Notices about a session's uncommitted changes: another session has overwritten them, or tries to."""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_hook_core.storms import PERSON, SECONDS
from swarm_hook_core.untrusted_text import command, named, quoted
from swarm_hook_core.watching.report import quoted as as_word
from swarm_hook_core.wording import duration
from swarm_mcp.answers.views import known_as, may_meet
from swarm_mcp.store.attempts import Attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.domain.session import Session
    from swarm_mcp.store import Store


def tell_of_loss(
    store: Store, writer: Session | None, owner_id: str, file: str, is_removed: bool, kept: str, made: tuple[str, str]
) -> list[str]:
    """Tell the owner of a change that `writer` was let overwrite or remove it; the ids of the sessions that were told.

    `kept`: where the content before is, empty where it is not kept; `made`: the tool of the call, and the command.
    """
    tool, line = made
    if writer is not None:
        deed = "remove" if is_removed else "overwrite"
        passed = Attempt(tool, file, why="passed", deed=deed, command=line, is_notice=True)
        store.denials.note(writer, writer.scope, file, owner_id, passed)
    owner = store.instances.live(owner_id)
    if owner is None:
        return []
    by = ""
    if writer is None or may_meet(writer.label, owner.label):
        if line:
            by = f" ({command(line)})"
        elif tool:
            by = f" ({named(tool)})"
        else:
            by = ""
    undo = f"The content before is kept: `swarm-mcp restore {as_word(file)}` brings it back."
    what = f"was let {'remove' if is_removed else 'overwrite'} {named(file)}{by}"
    text = (
        f"[auto] {_name(writer, owner)} {what}, which you changed and have not committed."
        f" {undo if kept else 'The content before could not be kept.'} Read the file before you go on with it."
    )
    if store.notices.tell(owner, text):
        return [owner.id]
    return []


def tell_of_denials(store: Store, writer: Session | None, owner_id: str, file: str, times: int) -> list[str]:
    """Tell the owner of a change, or from so many `times` on a person, that `writer` tries again and again."""
    if writer is None:
        return []
    owner, told = store.instances.live(owner_id), []
    often = f"{times} times within {duration(SECONDS)}"
    if times < PERSON:
        if owner is not None:
            text = (
                f"[auto] {_name(writer, owner)} was denied {often} to overwrite {named(file)}, which you changed"
                " and have not committed. When you are done with it, commit it, or tell that session."
            )
            told += [owner.id] if store.notices.tell(owner, text) else []
        return told
    identity = token(writer.label or "", "identity")
    for lead in store.instances.in_scope(writer.scope):
        words = (lead.label or "").split()
        if lead.id == writer.id or "mode:gateway" not in words or token(lead.label or "", "identity") != identity:
            continue
        if owner is not None:
            whose = _name(owner, writer)
        else:
            whose = "a session that has gone"
        text = (
            f"[auto] For the person you work for: {known_as(writer)} was denied {often} to overwrite"
            f" {named(file)}, and goes on trying: {whose} has changed it and not committed it. A person has to say"
            " whose change goes first."
        )
        told += [lead.id] if store.notices.tell(lead, text) else []
    return told


def tell_of_eviction(
    store: Store, writer: Session | None, owner_id: str, folder: str, call: tuple[str, str, bool], commits: list[str],
    main: str,
) -> list[str]:  # fmt: skip
    """Tell the session that works in `folder` of a call by `writer` that takes it away; the ids of those told.

    `call`: its deed as a verb, its command, True if it was denied; `commits`: name and subject of those that no other
    ref has; `main`: a folder of the same repository that stays, or empty.
    """
    owner = store.instances.live(owner_id)
    if owner is None:
        return []
    deed, line, is_denied = call
    by, kept = "", ""
    if line and (writer is None or may_meet(writer.label, owner.label)):
        by = f" ({command(line)})"
    if commits:
        names = [one.partition(" ") for one in commits]
        listed = ", ".join(f"{named(name)} {quoted(subject)}" for name, _blank, subject in names)
        where = f" -C {as_word(main)}" if main else ""
        kept = f" On no other branch or tag: {listed}; `git{where} branch NAME {named(names[0][0])}` keeps them."
    if is_denied:
        what = f"was stopped once from a call that would {deed} {named(folder)}{by}, in which you work"
        rest = " It may make the call again: commit, and tell that session if you still need the folder."
    else:
        what = f"makes a call to {deed} {named(folder)}{by}, in which you work"
        rest = " Look if the folder is still there before you go on."
    text = f"[auto] {_name(writer, owner)} {what}.{kept}{rest}"
    return [owner.id] if store.notices.tell(owner, text) else []


def _name(session: Session | None, reader: Session) -> str:
    if session is None:
        return "A session unknown here"
    if may_meet(session.label, reader.label):
        return known_as(session)
    return "A session of another identity"

"""The errands on which hooks send the coordinator's command, without waiting: mostly reports of what they decided."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_hook_core import coordinator, process
from swarm_hook_core.coordinator import LONGEST_WORDS, MOST_ALSO
from swarm_hook_core.denial import Denial, Loss, Notice
from swarm_hook_core.hooks import ToolCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.tenants import Eviction
    from swarm_hook_core.traces.trail import Owner

MOST_OWNERS = 20  # overwritten files of one call with an owner who is told


def send(
    verb: Sequence[str], runtime: str, session_id: str, words: Sequence[str],
    prefix: Sequence[str] | None = None,
) -> bool:  # fmt: skip
    """Start the coordinator's `verb` about a session in the background, with these further words.

    `prefix`: the argv prefix of its command, if the caller has it. Return False without a coordinator, or without an id
    of the session. Raises OSError.
    """
    argv = (prefix or coordinator.command()) if session_id else ()
    if not argv:
        return False

    process.start_detached([*argv, *verb, "--runtime", runtime, "--session-id", session_id, *words])
    return True


def note_denial(runtime: str, call: ToolCall, denial: Denial) -> None:
    """Have a denial recorded, and the session wait for a locked file. Raises OSError.

    Facts that explain the decision later go along, such as the path of the write.
    """
    loss = denial.loss
    held = loss.held if loss is not None else denial.held
    assert held is not None
    facts = {"--target": denial.path, "--directory": call.cwd, "--agent": call.agent}
    facts["--fence"] = str(held.fence) if isinstance(held.fence, int) else ""
    facts["--times"] = str(denial.times) if denial.times > 1 else ""
    words = [*_holder(held.instance_id), *_options(facts), *(_of_loss(loss, denial.reason) if loss is not None else ())]
    send(["denied"], runtime, call.session_id, [*words, "--tool", call.tool, "--", denial.file or call.folder])


def note_notice(runtime: str, call: ToolCall, notice: Notice) -> None:
    """Have a notice recorded. Raises OSError."""
    words = [*_holder(notice.loss.held.instance_id), *_options({"--directory": call.cwd, "--agent": call.agent})]
    words += [*_of_loss(notice.loss, notice.reason), "--tool", call.tool, "--", notice.path or call.folder]
    send(["denied", "--notice"], runtime, call.session_id, words)


def note_attempt(runtime: str, call: ToolCall, denial: Denial) -> None:
    """Have the attempt at a person's matter recorded. Raises OSError."""
    target = _options({"--target": denial.path if denial.path != denial.deed else ""})
    send(["attempted"], runtime, call.session_id, ["--tool", call.tool, *target, "--", denial.deed])


def tell_owners(runtime: str, call: ToolCall, owners: list[Owner], prefix: Sequence[str] | None = None) -> None:
    """Have each owner of overwritten changes told (``Trail.owners``). Raises OSError."""
    argv = prefix or coordinator.command()
    for trace, how, by, kept, times in owners[:MOST_OWNERS] if argv else ():
        facts = {"--how": how, "--kept": kept, "--tool": call.client_tool, "--command": by}
        facts["--times"] = str(times) if times else ""
        words = ["--owner", trace.held.instance_id, *_options(facts), "--", trace.path]
        send(["overwritten"], runtime, call.session_id, words, argv)


def tell_tenants(runtime: str, call: ToolCall, evictions: list[Eviction], prefix: Sequence[str] | None = None) -> None:
    """Have each session told whose work tree the call takes away, or was to (``tenants``). Raises OSError."""
    argv = prefix or coordinator.command()
    if not argv:
        return
    for one in evictions:
        words = _options({"--deed": one.deed, "--command": one.by[:LONGEST_WORDS], "--main": one.main})
        if one.is_denied:
            words.append("--denied")
        for commit in (one.commits or ())[:MOST_ALSO]:
            words.append(f"--commit={commit.name} {commit.subject}"[:LONGEST_WORDS])
        for held in one.tenants:
            send(["evicted"], runtime, call.session_id, ["--owner", held.instance_id, *words, "--", one.root], argv)


def _holder(instance_id: str) -> list[str]:
    return ["--holder", instance_id] if instance_id else []


def _of_loss(loss: Loss, reason: str) -> list[str]:
    """Return the options of ``denied`` about an obstacle, and about the words for the model."""
    told = {"--why": loss.why, "--deed": loss.deed, "--command": loss.by[:LONGEST_WORDS]}
    told["--said"] = reason.partition("\n")[0][:LONGEST_WORDS]
    told["--changed"] = str(loss.at) if loss.at else ""
    return _options(told) + [f"--also={path}" for path in loss.also[:MOST_ALSO]]


def _options(facts: dict[str, str]) -> list[str]:
    """Return the facts that are not empty as options."""
    return [f"{flag}={value}" for flag, value in facts.items() if value]

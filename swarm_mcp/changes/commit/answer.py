"""The answer of a commit, for the command and for the tool."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.changes.commit import Commit, Committed


def described(commit: Commit, done: Committed) -> dict[str, Any]:
    """Return a finished or planned commit as an object for programs."""
    value: dict[str, Any] = {
        "ok": True,
        "commit": done.commit or None,
        "branch": done.branch or None,
        "files": [{"file": one.path, "added": one.added, "removed": one.removed} for one in done.parts],
        "left_out": [{"place": one.words, "by": commit.named(one.authors)} for one in done.left_out],
    }
    if done.staged:
        value["staged_by_others"] = done.staged
    if done.output.strip():
        value["hooks"] = done.output.strip()
    if done.rewritten:
        value["changed_by_hooks"] = {"files": done.rewritten, "apply": done.apply or None}
    return value


def lines(commit: Commit, done: Committed) -> list[str]:
    """Return the same as lines for a reader."""
    where = f"on {done.branch or 'a detached HEAD'}"
    names = ", ".join(one.path for one in done.parts[:10])
    if len(done.parts) > 10:
        names += f" and {len(done.parts) - 10} more"
    if done.commit:
        found = [f"committed {done.commit[:12]} {where}: {names}"]
    else:
        found = [f"would commit {where}: {names}"]
    if done.left_out:
        found.append(f"left out: {commit.listed(done.left_out)}")
    if done.staged:
        found.append(
            f"staged content of others that does not fit to this commit was left: {', '.join(done.staged)}"
            " (`git diff --cached` shows it)"
        )
    if done.rewritten:
        found.append(f"the hooks changed {', '.join(done.rewritten[:10])} in the commit, not in the work tree")
        if done.apply:
            found[-1] += f": `{done.apply}` changes it here, too"
    return found

"""Cases from public reports, each with its answer at `keep`; and denials whose advice fits the kind of call."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.traced import Player, git

pytestmark = pytest.mark.usefixtures("no_faults")

COMMIT = "git -c user.name=t -c user.email=t@t commit -q"
# A has committed in the shared work tree, and pushed if the command is a push. B's command -> words of its denial;
# the same command passes then. {index} is a private index from before A's commit.
HISTORY = {
    "git reset --hard HEAD~1": "would move the branch of this work tree",
    "git reset --soft HEAD~1": "would move the branch of this work tree",
    "git commit --amend --no-edit": "would replace the last commit",
    "git branch -f main HEAD~1": "would move or rename the branch main",
    "git checkout other": "would switch this work tree to other",
    "git push -f origin other:main": "would drop 1 commit of main on origin that this session has not made",
    "git stash pop": "No session at work has made it",
    "GIT_INDEX_FILE={index} git commit -m x": "which is older than the last move of main",
}


@pytest.mark.parametrize("command", HISTORY)
@pytest.mark.sampled
def test_a_command_that_undoes_or_moves_another_session_s_commit_is_denied_once(
    command: str, work: Path, tmp_path: Path
) -> None:
    index = tmp_path / "old"
    for name in ("user.name", "user.email"):
        git(work, "config", name, "t")
    git(work, "branch", "other")
    git(tmp_path, "init", "-q", "--bare", "remote")
    git(work, "remote", "add", "origin", str(tmp_path / "remote"))
    subprocess.run(["git", "read-tree", "HEAD"], cwd=work, env={**os.environ, "GIT_INDEX_FILE": str(index)}, check=True)
    os.utime(index, (1, 1))
    if "stash" in command:  # of a session that has gone
        (work / "other.md").write_text("aside\n")
        past = {**os.environ, "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"}
        subprocess.run(["git", "stash", "-q"], cwd=work, env=past, check=True)
    a, b = Player("codex", work), Player("claude-code", work)
    assert a.edits("notes.md", "beta", "A") == "" == a.runs(f"{COMMIT} -am a")
    git(work, "push", "-q", "-u", "origin", "main")
    said = b.denied("Bash", {"command": command.format(index=index)})
    assert HISTORY[command] in said and "the same command again goes ahead" in said
    if "stash" not in command:
        assert f"codex {a.row['id'][:8]}" in said or "GIT_INDEX_FILE" in said
    assert b.denied("Bash", {"command": command.format(index=index)}) == ""


def _bash(command: str) -> tuple[str, Any]:
    return "Bash", {"command": command}


# kind of call -> (the call, words of the advice, words that do not fit)
REMOVES = ("Leave it to their author", "Write a text")
KINDS: dict[str, tuple[tuple[str, Any], tuple[str, str]]] = {
    "rm -r": (_bash("rm -r sub"), REMOVES),
    "rm": (_bash("rm sub/deep.md"), REMOVES),
    "find": (_bash("find sub -name '*.md' -delete"), REMOVES),
    "patch that deletes": (
        ("apply_patch", {"command": "*** Begin Patch\n*** Delete File: sub/deep.md\n*** End Patch\n"}), REMOVES
    ),
    "here-document": (_bash("cat > sub/deep.md <<'EOF'\nx\nEOF"), ("Write a text that keeps it", "removal")),
    "copy over": (_bash("cp other.md sub/deep.md"), ("text that keeps", "removal")),
    "whole write": (
        ("apply_patch", {"command": "*** Begin Patch\n*** Add File: sub/deep.md\n+x\n*** End Patch\n"}),
        ("Write a text that keeps it", "removal"),
    ),
    "git": (_bash("git checkout ."), ("go on without this command", "text that keeps")),
    "git of one file": (_bash("git restore sub/deep.md"), ("go on without this command", "text that keeps")),
    "git rm": (_bash("git rm -f sub/deep.md"), ("go on without this command", "text that keeps")),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled
def test_the_advice_about_another_session_s_work_fits_the_call(kind: str, work: Path) -> None:
    (tool, given), (fits, unfit) = KINDS[kind]
    peer, me = Player("claude-code", work), Player("codex", work)
    assert peer.edits("sub/deep.md", "beta", "PEER") == ""
    for _ in range(4):  # the third denial is shorter
        said = me.denied(tool, given)
        assert said and unfit.lower() not in said.lower(), said
    assert fits in Player("codex", work).denied(tool, given)


# kind of call -> (words of the advice, words that do not fit), for a person's work
OF_A_PERSON = {"rm": ("Leave it as it is", "Read it first"), "git": ("Leave it as it is", "Read it first"),
               "here-document": ("Read it first", ""), "whole write": ("Read it first", "")}  # fmt: skip


@pytest.mark.parametrize("kind", OF_A_PERSON)
def test_the_advice_about_a_person_s_work_fits_the_call(kind: str, work: Path, me: Player) -> None:
    me.runs("ls")
    (work / "sub" / "deep.md").write_text("a person's\n")
    said = me.denied(*KINDS[kind][0])
    fits, unfit = OF_A_PERSON[kind]
    assert fits in said and (not unfit or unfit not in said), said

"""A day of ordinary work through the hooks: who works alone, or elsewhere, hears nothing of others; nobody is hindered.

The work is done for real, in a repository: each call goes through its session's hooks, then it happens, then the hook
after it runs. What any of them says is kept.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.sessions import captured, mistakes, new_session, run, start

pytestmark = pytest.mark.slow

LEVELS = ("notice", "keep", "turn")
# One turn each, in a folder of its own: `edit OLD NEW FILE`, `new FILE`, or a shell command.
DAY = (
    (
        "git status --short", "ls", "cat HERE/app.py", "grep -rn 'def ' HERE", "edit one two HERE/app.py",
        "edit two three HERE/app.py", "new HERE/util.py", "python3 HERE/app.py", "git diff -- HERE",
    ),
    (
        "sed -n 1,20p HERE/util.py", "sed -i 's/line/row/' HERE/util.py", "echo '# done' >> HERE/notes.md",
        "cat > HERE/config.json <<'EOF'\n{\"a\": 1}\nEOF", "git add HERE && git commit -qm 'work' -- HERE", "git log -1 --oneline",
    ),
    (
        "edit three four HERE/app.py", "cp HERE/util.py HERE/helper.py", "mv HERE/helper.py HERE/tool.py", "rm HERE/config.json",
        "mkdir -p HERE/deep && printf 'x\\n' > HERE/deep/x.txt", "git checkout -- HERE/app.py", "cat HERE/app.py",
        "edit three five HERE/app.py", "git restore HERE/notes.md",
    ),
    (
        "python3 -c \"open('HERE/made.txt', 'w').write('made')\"", "find HERE -name '*.txt' | xargs wc -l", "make test",
        "git stash list", "git add HERE/app.py HERE/made.txt", "git commit -qm 'more' -- HERE/app.py HERE/made.txt",
        "git rm -q --cached HERE/made.txt; git reset -q -- HERE/made.txt", "tar cf /dev/null HERE",
    ),
)  # fmt: skip


class Said(NamedTuple):
    """Something that a hook said about a call, and whether it was denied."""

    call: str
    text: str
    denied: bool


class Worker:
    """A session that works as it is told, and keeps what its hooks say."""

    def __init__(self, runtime: str, repo: Path, level: str) -> None:
        self.runtime, self.repo, self.env = runtime, repo, {"SWARM_AUTO": level}
        self.session = new_session()
        self.said: list[Said] = []
        self.at_turns: list[str] = []
        start(runtime, self.session, repo, **self.env)

    def day(self, folder: str) -> None:
        """All turns of a day, with `folder` for HERE."""
        for turn in DAY:
            self.turn(*(call.replace("HERE", folder) for call in turn))

    def turn(self, *calls: str) -> None:
        """One turn with these calls."""
        for _ in self.turns_calls(*calls):
            pass

    def turns_calls(self, *calls: str) -> Iterator[str]:
        """The same, one call at a time: yields each when it has been made."""
        self.at_turns.append(self._hook("turn", "UserPromptSubmit", prompt="go on"))
        for call in calls:
            self._call(call)
            yield call
        self._hook("turn", "Stop")

    def _call(self, call: str) -> None:
        verb, *words = call.split(" ")
        if verb == "edit":
            self._edit(*words)
        elif verb == "new":
            self._new(words[0])
        else:
            self._shell(call)

    def _edit(self, old: str, new: str, name: str) -> None:
        file = self.repo / name
        if self.runtime == "codex":
            given = ("apply_patch", {"command": _patch(f"*** Update File: {name}\n@@\n-{old}\n+{new}")})
        else:
            given = ("Edit", {"file_path": str(file), "old_string": old, "new_string": new})
        if self._passes(f"edit {name}", *given):
            text = file.read_text()
            assert old in text, f"the work does not fit the files: no {old!r} in {text!r}"
            file.write_text(text.replace(old, new))

    def _new(self, name: str) -> None:
        text = "a line\nanother line\n"
        if self.runtime == "codex":
            given = ("apply_patch", {"command": _patch(f"*** Add File: {name}\n+a line\n+another line")})
        else:
            given = ("Write", {"file_path": str(self.repo / name), "content": text})
        if self._passes(f"new {name}", *given):
            (self.repo / name).write_text(text)

    def _shell(self, command: str) -> None:
        given: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "call"}
        if self._passes(command, given["tool_name"], given["tool_input"]):
            done = subprocess.run(["/bin/sh", "-c", command], cwd=self.repo, capture_output=True, text=True)
            assert done.returncode == 0 or command == "make test", f"{command}: {done.stderr}"
            self._hear(command, self._hook("post_tool_use", "PostToolUse", tool_response={}, **given))

    def _passes(self, call: str, tool: str, tool_input: dict[str, Any]) -> bool:
        out = self._hook("pre_tool_use", "PreToolUse", tool_name=tool, tool_input=tool_input, tool_use_id="call")
        return not self._hear(call, out)

    def _hear(self, call: str, out: str) -> bool:
        """Keep what was said; whether it is a denial."""
        if not out:
            return False
        told = json.loads(out)["hookSpecificOutput"]
        denied = told.get("permissionDecision") == "deny"
        self.said.append(Said(call, told.get("permissionDecisionReason") or told["additionalContext"], denied))
        return denied

    def _hook(self, name: str, event: str, **fields: Any) -> str:
        payload = {**captured(self.runtime, "UserPromptSubmit", self.repo), "session_id": self.session}
        ran = run(self.runtime, name, {**payload, "hook_event_name": event, **fields}, self.env, self.repo)
        assert (ran.code, mistakes()) == (0, [])
        return ran.out


def _patch(body: str) -> str:
    return f"*** Begin Patch\n{body}\n*** End Patch\n"


def repository(root: Path, *folders: str) -> Path:
    """A repository with the files that a day's work begins with, in each of `folders`."""
    for folder in folders:
        (root / folder).mkdir(parents=True)
        (root / folder / "app.py").write_text("def one():\n    return 1\n")
        (root / folder / "notes.md").write_text("notes\n")
    for words in (["init", "-q"], ["config", "user.name", "unit"], ["config", "user.email", "unit@localhost"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["git", "commit", "-qm", "Start"], cwd=root, check=True)
    return root


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
def test_who_works_alone_hears_nothing(tmp_path: Path, repo: Path, level: str, runtime: str) -> None:
    place = repository(tmp_path.resolve() / "alone", "src")
    worker = Worker(runtime, place, level)
    worker.day("src")
    assert (worker.said, [told for told in worker.at_turns if told]) == ([], [])


def test_two_in_separate_checkouts_hear_nothing(tmp_path: Path, repo: Path, level: str) -> None:
    places = [repository(tmp_path.resolve() / name, "src") for name in ("here", "there")]
    workers = [Worker(runtime, place, level) for runtime, place in zip(("claude-code", "codex"), places, strict=True)]
    side_by_side(workers, ["src", "src"])
    assert [(worker.said, [told for told in worker.at_turns if told]) for worker in workers] == [([], []), ([], [])]


def test_two_in_separate_folders_of_one_checkout_hear_nothing_at_their_calls(
    tmp_path: Path, repo: Path, level: str
) -> None:
    """Which files the other has changed is said where a turn begins, and nowhere else."""
    place = repository(tmp_path.resolve() / "both", "mine", "yours")
    workers = [Worker(runtime, place, level) for runtime in ("claude-code", "codex")]
    side_by_side(workers, ["mine", "yours"])
    assert [worker.said for worker in workers] == [[], []]
    assert all(len(told.splitlines()) <= 5 for worker in workers for told in worker.at_turns)


def side_by_side(workers: list[Worker], folders: list[str]) -> None:
    """A day of each, one call of the first and one of the second in turn."""
    for turn in DAY:
        calls = [
            worker.turns_calls(*(call.replace("HERE", folder) for call in turn))
            for worker, folder in zip(workers, folders, strict=True)
        ]
        for _ in zip(*calls, strict=True):
            pass


@pytest.mark.parametrize("level", ["notice", "keep"])
def test_no_edit_is_denied_beside_another_who_edits_the_same_files(tmp_path: Path, repo: Path, level: str) -> None:
    """In the midst of both turns; at `notice` nothing else is denied either."""
    place = repository(tmp_path.resolve() / "same", "src")
    one, two = Worker("claude-code", place, level), Worker("codex", place, level)
    edits = [f"edit {old} {new} src/app.py" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    (place / "src/app.py").write_text("a\n")
    subprocess.run(["git", "commit", "-qam", "Begin"], cwd=place, check=True)
    first, second = one.turns_calls(*edits[::2]), two.turns_calls(*edits[1::2])
    for _ in zip(first, second, strict=True):
        pass
    if level == "notice":
        one.turn("cp src/notes.md src/app.py", "git checkout -- src/app.py")
        two.turn("printf 'again\\n' > src/app.py", "git stash", "git stash pop", "rm src/app.py")
    assert [said for said in (*one.said, *two.said) if said.denied] == []

"""A day of ordinary work through the hooks: sessions alone, or on other files, hear nothing; no call is denied."""

import subprocess
import time
from pathlib import Path

import pytest
from support.worker import Worker, repository

pytestmark = pytest.mark.slow

LEVELS = (pytest.param("notice", marks=pytest.mark.thorough), "keep", "turn")
# One turn each, in a folder of its own.
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


# Commands that only a session alone runs without thinking.
SWEEPS = (
    "new HERE/last.py", "git add -A && git commit -qam 'all of it'", "edit five six HERE/app.py",
    "git stash -q && git stash pop -q", "git checkout .", "edit five seven HERE/app.py", "git reset -q --hard", "git clean -fdq",
)  # fmt: skip


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(
    ("level", "runtime"),
    [
        ("keep", "claude-code"),
        ("turn", "codex"),
        *(pytest.param(*rest, marks=pytest.mark.thorough) for rest in (("keep", "codex"), ("turn", "claude-code"))),
        *(pytest.param("notice", runtime, marks=pytest.mark.thorough) for runtime in ("claude-code", "codex")),
    ],
)
def test_who_works_alone_hears_nothing(tmp_path: Path, repo: Path, level: str, runtime: str) -> None:
    place = repository(tmp_path.resolve() / "alone", "src")
    worker = Worker(runtime, place, level)
    for turn in (*DAY, SWEEPS):
        worker.turn(*(call.replace("HERE", "src") for call in turn))
    assert (worker.said, [told for told in worker.at_turns if told]) == ([], [])


def test_two_in_separate_checkouts_hear_nothing(tmp_path: Path, repo: Path, level: str) -> None:
    places = [repository(tmp_path.resolve() / name, "src") for name in ("here", "there")]
    workers = [Worker(runtime, place, level) for runtime, place in zip(("claude-code", "codex"), places, strict=True)]
    side_by_side(workers, ["src", "src"])
    assert [(worker.said, [told for told in worker.at_turns if told]) for worker in workers] == [([], []), ([], [])]


def test_two_in_separate_folders_of_one_checkout_hear_nothing_at_their_calls(
    tmp_path: Path, repo: Path, level: str
) -> None:
    """Changed files of the other session are listed at the beginning of a turn only.

    Except at `turn`: there its files are locked, and a program that cannot be parsed may write any of them.
    """
    place = repository(tmp_path.resolve() / "both", "mine", "yours")
    workers = [Worker(runtime, place, level) for runtime in ("claude-code", "codex")]
    side_by_side(workers, ["mine", "yours"])
    said = [said for worker in workers for said in worker.said]
    if level == "turn":
        said = [said for said in said if said.denied or "cannot be told beforehand" not in said.text]
    assert said == []
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


def test_two_on_the_same_file_in_turn_hear_one_line_each_way(tmp_path: Path, repo: Path, level: str) -> None:
    """Each session is told once about the other's change, however often that writes; no edit is denied."""
    place = repository(tmp_path.resolve() / "same", "src")
    one, two = (Worker("codex", place, level) for _ in range(2))
    one.turn("edit one two src/app.py", "edit two three src/app.py")
    two.turn("edit three four src/app.py", "edit four five src/app.py", "sed -i s/five/six/ src/app.py")
    one.turn("edit six seven src/app.py", "edit seven eight src/app.py")
    assert [(said.denied, "src/app.py" in said.text) for said in one.said] == [(False, True)], one.said
    assert [(said.denied, "src/app.py" in said.text) for said in two.said] == [(False, True)], two.said
    assert [said.text for said in (*one.said, *two.said) if "\n" in said.text.strip()] == []


@pytest.mark.parametrize("over", ["committed", "undone", "left"])
def test_what_is_over_is_no_news(tmp_path: Path, repo: Path, over: str) -> None:
    """Changes that were committed or undone, or whose session has ended."""
    place = repository(tmp_path.resolve() / "same", "src")
    one, two = Worker("claude-code", place, "keep"), Worker("codex", place, "keep")
    later = f"'{int(time.time()) + 60} +0000'"  # within one second the order is unknown
    end = {"committed": [f"git commit -qam done --date={later}"], "undone": ["git checkout -- src/app.py"]}
    one.turn("edit one two src/app.py", *end.get(over, []))
    if over == "left":
        one.end()
    look = ["cat src/app.py"] if over == "left" else []  # it counts as a person's work by now
    two.turn(*look, "cp src/notes.md src/app.py", *([] if over == "undone" else ["git checkout -- src/app.py"]))
    assert (two.said, [told for told in two.at_turns if told]) == ([], [])


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

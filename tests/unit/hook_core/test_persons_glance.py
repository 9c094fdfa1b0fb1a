"""The first look at a command: common commands stay unread, and every destroying command is read."""

from pathlib import Path

import pytest

from swarm_hook_core.check.company import may_destroy

HARMLESS = [
    "ls -la", "cat a.txt", "git status", "git status --short && git diff", "git log --oneline -5 | head",
    "git add a.txt", "git -C sub diff", "pytest -q", "npm test 2>&1 | tail -5", "make 2>/dev/null",
    "grep -rn 'x => y' src", "python3 -c 'print(1 >= 0)'", "echo x >> a.txt", "pytest > new-file.log", "cargo build",
    "git stash list", "git branch -a", "git push origin main", "find . -name '*.py'", "sed -n 1,20p a.txt",
    "git worktree list", "git config user.name", "node -e 'console.log(1)'", "mkdir -p a/b", "touch x",
]  # fmt: skip
DESTROYERS = [
    "rm a.txt", "/bin/rm -rf .", "sudo rm x", "git checkout .", "git -C sub checkout -- a", "git reset --hard",
    "git restore .", "git stash", "git clean -fd", "git switch -f main", "git co .", "git rebase -i HEAD~2", "mv a b",
    "cp a b", "echo x > a.txt", "echo x >a.txt", "cat <<EOF > a.txt\nx\nEOF", "printf x | tee a.txt", "find . -delete",
    "find . -exec rm {} +", "xargs rm < list", "sed -i s/a/b/ a.txt", "perl -pi -e s/a/b/ a.txt", "cd sub && echo > new",
    "python3 -c \"open('a.txt', 'w')\"", "node -e \"fs.writeFileSync('a.txt', '')\"", "truncate -s0 a.txt", ": > a.txt",
    "git --no-pager -c a=b checkout .", "true;git reset --hard", "$(git checkout .)", "`git stash`", "> $FILE",
    "git worktree remove --force ../x", "git add -A", "git add . && x", "git commit -m 'remove > and rm'", "echo x >| a.txt", "dd if=b of=a.txt", "(cd x; rm y)", "git pull --autostash",
]  # fmt: skip


@pytest.mark.parametrize("command", HARMLESS)
def test_a_common_command_is_not_read(command: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    assert not may_destroy(command, str(tmp_path))


@pytest.mark.parametrize("command", DESTROYERS)
def test_a_command_that_may_destroy_is_read(command: str, tmp_path: Path) -> None:
    from swarm_hook_core.check.company import DESTROYERS as MARKS

    (tmp_path / "a.txt").write_text("x")
    assert may_destroy(command, str(tmp_path)) and any(mark in command for mark in MARKS)

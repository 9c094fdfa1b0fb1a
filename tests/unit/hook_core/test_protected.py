"""The check denies an agent's call that would certainly weaken the protection of others; all else passes."""

import json
import os
from pathlib import Path

import pytest
from support.files import files_at, folder_at, text_at
from support.sessions import hook_core, mistakes, new_session, ready_store

from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.protected import CLIENTS, matter_of_file
from swarm_hook_core.state import config_path, state_dir, store_path

GUARD = "#!/bin/sh\n# swarm guard, written by `swarm-mcp guard install`; `swarm-mcp guard uninstall` takes it away.\n"


class Guarded:
    """A home with an installed swarm, and a guarded repository with a session in it."""

    def __init__(self, folder: Path):
        self.home = Path(os.environ["HOME"])
        self.repo = folder / "repo"
        (self.repo / ".git" / "hooks").mkdir(parents=True)
        (self.repo / ".git" / "config").write_text("[core]\n\tbare = false\n")
        ready_store()
        for path in (
            Path(config_path()),
            Path(state_dir()) / "kept" / "1",
            Path(state_dir()) / "worktrees" / "t" / "f",
        ):
            text_at(path, "{}")
        self.claude, self.codex = self.home / ".claude", self.home / ".codex"
        for folder in (
            self.claude / "plugins/cache/swarm",
            self.codex,
            self.home / ".local/share/swarm-mcp/marketplace",
        ):
            folder.mkdir(parents=True)
        (self.claude / "settings.json").write_text(json.dumps({"enabledPlugins": {"swarm@swarm": True}}))
        (self.codex / "config.toml").write_text("[plugins.swarm]\n")
        self.hooks = self.repo / ".git" / "hooks"
        files_at(self.hooks, dict.fromkeys(("pre-commit", "pre-push"), GUARD))
        self.session = new_session()
        (self.repo / "src").mkdir()

    def text(self, words: str) -> str:
        """`words` with the paths of this place."""
        return words.format(
            config=config_path(), state=state_dir(), store=store_path(), home=self.home, repo=self.repo,
            claude=self.claude, codex=self.codex,
        )  # fmt: skip

    def reason(self, tool: str, given: dict, runtime: str = "claude-code") -> str:
        """Why a call is denied, empty where it is not."""
        core = hook_core(runtime)
        verdict = core.check(ToolCall(tool, given, self.session, str(self.repo)))
        assert mistakes() == []
        return verdict.denial.reason if verdict is not None and verdict.denial is not None else ""

    def shell(self, command: str) -> str:
        """The same of a shell command."""
        return self.reason("Bash", {"command": self.text(command)})


@pytest.fixture
def place(tmp_path: Path) -> Guarded:
    return Guarded(tmp_path)


DENIED = [
    "python3 -c \"import sqlite3; sqlite3.connect('{store}').execute('DELETE FROM context')\"",
    # swarm's own settings, store, state
    "echo '{{\"auto\": \"off\"}}' > {config}", "sed -i s/keep/off/ {config}", "rm {config}", "cp /dev/null {config}",
    "rm {store}", "rm -f {store}-wal {store}-shm", "mv {store} /tmp/elsewhere", "rm -rf {state}", "rm -r {state}/kept",
    "truncate -s 0 {store}", "python3 -c \"open('{config}', 'w').write('x')\"", "tee {config} < /dev/null",
    "cd $(dirname {state}) && rm -rf $(basename {state})", "rm -rf {home}", "cd / && rm -rf ${{HOME}}/.config", "find {state} -delete",
    "sqlite3 {store} 'DELETE FROM context'", "sqlite3 {store} 'SELECT * FROM context'", "sqlite3 -readonly {store} .tables",
    "env -u X bash -c 'rm -rf {state}'", "setsid nohup rm -rf {store}", "true; (rm -rf {state} &)", "chmod -R 000 {state}",
    "ln -sf /dev/null {config}", "bash -lc \"rm {store}\"",
    # clients
    "rm -rf {claude}", "rm {claude}/settings.json", "echo '{{}}' > {claude}/settings.json", "rm -rf {claude}/plugins",
    "sed -i /swarm/d {codex}/config.toml", "rm -rf {home}/.local/share/swarm-mcp",
    # the guard
    "git config core.hooksPath /tmp/none", "git config --local core.hooksPath x", "git config --unset core.hooksPath",
    "git config --global core.hooksPath /tmp/none", "git config set core.hooksPath x",
    "rm .git/hooks/pre-commit", "echo > .git/hooks/pre-push", "chmod -x .git/hooks/pre-commit", "rm -rf .git/hooks",
    # commands
    "swarm-mcp protect off --for 5m", "swarm-mcp protect off", "swarm-mcp auto off", "swarm-mcp auto notice --user", "swarm-locks auto off", "/usr/local/bin/swarm-mcp auto off",
    "swarm-mcp protect --fence off", "swarm-mcp protect --fence=off --user",
    "python3 -m swarm_mcp auto off", "env -u CLAUDECODE swarm-mcp auto off", "nohup setsid swarm-mcp auto off &",
    "sh -c 'swarm-mcp auto off'", "echo auto off | xargs swarm-mcp", "swarm-mcp uninstall", "swarm-mcp guard uninstall",
    "swarm-mcp task answer t yes", "swarm-mcp answer t yes",
    "swarm-mcp install --no-kernel", "swarm-mcp team leave", "swarm-mcp steal f --force --reason x",
    "swarm-mcp undo --person f", "env -i setsid swarm-mcp commit --person -m x",
    "SWARM_AUTO=off swarm-mcp auto off", "swarm-mcp hold x -- rm {store}",
]  # fmt: skip
PASSES = [
    "cat {config}", "ls -la {state}", "grep auto {config}", "cp {config} src/copy.json", "cp {state}/kept/1 src/a",
    "echo x > {state}/worktrees/t/f", "rm {state}/worktrees/t/f", "swarm-mcp auto", "swarm-mcp protect", "swarm-mcp protect --fence on", "swarm-mcp auto turn",
    "swarm-mcp auto keep", "swarm-mcp lock a --note swarm.db", "swarm-mcp uninstall --dry-run", "swarm-mcp doctor",
    "swarm-mcp guard install", "swarm-mcp status && swarm-mcp log", "swarm-mcp unlock a",
    "git config core.hooksPath", "git config --get core.hooksPath", "git config user.name me", "git config core.editor vi",
    "rm -rf {repo}/src", "echo x > src/config.toml", "echo x > src/settings.json", "rm -rf src/swarm-mcp", "rm src/hooks.json",
    "sqlite3 src/app.db 'DELETE FROM x'", "git -c core.hooksPath=/x status", "echo swarm-mcp auto off", "mkdir -p src/.claude",
    "HOME=/tmp/x swarm-mcp auto off", "SWARM_CONFIG_DIR=/tmp/x swarm-mcp auto off", "echo x > {claude}/CLAUDE.md",
    "echo x > {home}/.gemini/settings.json", "rm -rf {home}/project", "touch {home}/.claude/plans/swarm.md",
    "git clone https://x/swarm-mcp src/swarm", "pip install swarm-locks",
]  # fmt: skip


@pytest.mark.parametrize("command", DENIED)
def test_a_command_that_certainly_weakens_is_denied(place: Guarded, command: str) -> None:
    reason = place.shell(command)
    assert reason.startswith("swarm blocked Bash") and "only a person" in reason
    assert "in a terminal of their own" in reason


@pytest.mark.parametrize("command", PASSES)
@pytest.mark.sampled
def test_what_weakens_nothing_passes(place: Guarded, command: str) -> None:
    assert place.shell(command) == ""


WRITTEN = {
    "{config}": "swarm-mcp protect LEVEL", "{store}": "steal", "{store}-wal": "steal", "{state}/traces/x": "swarm's own state",
    "{claude}/settings.json": "uninstall --client claude-code", "{claude}/plugins/cache/swarm/swarm/1/hooks.json": "plugin",
    "{home}/.local/share/swarm-mcp/marketplace/integrations/hook.py": "plugin", "{repo}/.git/hooks/pre-commit": "guard uninstall",
    "alias/config.json": "swarm-mcp protect LEVEL", "../repo/.git/../.git/hooks/pre-push": "guard uninstall",
}  # fmt: skip


@pytest.mark.parametrize(("path", "way"), WRITTEN.items(), ids=list(WRITTEN))
def test_a_write_tool_does_not_write_it(place: Guarded, path: str, way: str) -> None:
    (place.repo / "alias").symlink_to(os.path.dirname(config_path()))
    for tool, given in (("Write", {"content": "x"}), ("Edit", {"old_string": "a", "new_string": "b"})):
        reason = place.reason(tool, {"file_path": place.text(path), **given})
        assert reason.startswith(f"swarm blocked {tool} for ") and way in reason, reason


def test_folders_over_the_clients_homes_are_looked_at_once(place: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    look = os.lstat
    monkeypatch.setattr(os, "lstat", lambda path: looks.append(os.fspath(path)) or look(path))
    assert matter_of_file("/elsewhere/file") is None
    homes = [path for path in looks if path == str(place.home)]
    assert 1 <= len(homes) < len(CLIENTS)  # once for each folder below it that homes lie in


def test_a_clients_home_behind_links_is_protected(place: Guarded) -> None:
    place.claude.rename(place.home / "settings of claude")
    place.claude.symlink_to(place.home / "settings of claude")
    for path in (place.claude / "settings.json", place.home / "settings of claude" / "settings.json"):
        assert "Claude Code's settings" in place.reason("Write", {"file_path": str(path), "content": "x"})


def test_a_patch_does_not_write_it(place: Guarded) -> None:
    text = f"*** Begin Patch\n*** Update File: {place.codex}/config.toml\n@@\n-[plugins.swarm]\n+x\n*** End Patch\n"
    assert "Codex's settings" in place.reason("apply_patch", {"command": text}, "codex")


def test_another_servers_tool_does_not_write_it(place: Guarded) -> None:
    assert place.reason("mcp__fs__write_file", {"path": config_path(), "content": "x"}).startswith("swarm blocked")
    assert place.reason("mcp__fs__write_file", {"path": str(place.repo / "config.json"), "content": "x"}) == ""


@pytest.mark.parametrize(
    ("path", "given", "denied"),
    [
        ("{repo}/src/config.json", {"content": "x"}, False),
        ("{repo}/swarm_mcp/sessions/person.py", {"content": "x"}, False),
        ("{home}/.claude/CLAUDE.md", {"content": "swarm"}, False),
        ("{home}/.gemini/settings.json", {"content": "x"}, False),
        ("{repo}/.git/hooks/post-commit", {"content": "x"}, False),
        ("{repo}/.git/config", {"old_string": "a", "new_string": "b"}, False),
    ],
)
def test_files_that_carry_nothing_of_ours_are_the_sessions_own_business(place: Guarded, path, given, denied) -> None:
    tool = "Write" if "content" in given else "Edit"
    assert bool(place.reason(tool, {"file_path": place.text(path), **given})) is denied


def test_the_setting_by_which_git_finds_the_guard(place: Guarded) -> None:
    folder = folder_at(place.repo / ".git" / "swarm-hooks")
    (folder / "pre-commit").write_text(GUARD)
    config = text_at(place.repo / ".git" / "config", f"[core]\n\tbare = false\n\thooksPath = {folder}\n")
    edit = {"file_path": str(config), "old_string": f"hooksPath = {folder}", "new_string": ""}
    assert "guard uninstall" in place.reason("Edit", edit)
    assert place.reason("Edit", {**edit, "old_string": "bare = false"}) == ""
    assert "guard uninstall" in place.reason("Write", {"file_path": str(config), "content": "[core]\n"})
    assert "guard uninstall" in place.shell("rm -rf .git/swarm-hooks")


def test_without_a_guard_hooks_are_the_repositorys_own(place: Guarded) -> None:
    for path in place.hooks.iterdir():
        path.unlink()
    for command in ("git config core.hooksPath .husky", "echo x > .git/hooks/pre-commit", "rm -rf .git/hooks"):
        assert place.shell(command) == ""

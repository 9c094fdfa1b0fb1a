"""Ways around a check of git commands: wrappers, commit hooks, lists of names; and processes of other sessions."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.altered import Limits
from support.files import program_at
from support.traced import Player, git

from swarm_hook_core import fence
from swarm_hook_core.process import start_time
from swarm_hook_core.shell import effects_of
from swarm_hook_core.shell.programs.git import listings
from swarm_hook_core.state import fault_log

pytestmark = pytest.mark.slow

CLIENTS = ("claude-code", "codex")


@pytest.fixture(params=CLIENTS)
def me(request: pytest.FixtureRequest, work: Path) -> Player:
    """A session beside another one that has changed notes.md and made new.txt."""
    for name in ("user.name", "user.email"):
        git(work, "config", name, "t@t")
    peer = Player(CLIENTS[request.param == "claude-code"], work)
    peer.edits("notes.md", "beta", "PEER")
    peer.will_put("new.txt", "PEER\n")
    (work / "new.txt").write_text("PEER\n")
    return Player(request.param, work)


def denied(me: Player, command: str) -> str:
    return me.denied("Bash", {"command": command})


def told(me: Player, command: str) -> str:
    """Return the notice for a command. It is not run."""
    return me.told("Bash", {"command": command})


WRAPPED = """
rtk git stash
rtk git checkout -- .
rtk proxy git reset --hard
doppler run -- git stash
doppler run --command "git stash"
op run --env-file=.env -- git stash
nix develop -c git reset --hard
nix shell nixpkgs#git --command git stash
nix run nixpkgs#git -- stash
watchexec -- git stash
watchexec -e js,css git stash
conda run -n x git stash
micromamba run -n x --cwd . git stash
infisical run --env=dev -- git stash
volta run --node 18 git stash
fnm exec --using=18 git stash
aws-vault exec work -- git stash
chamber exec service -- git stash
pyenv exec git stash
sops exec-env secrets.yaml 'git stash'
proxychains4 -q git stash
onchange '**/*.js' -- git stash
doppler run -- rtk git stash
"""


@pytest.mark.sampled
def test_what_runs_the_rest_of_its_line_is_unwrapped(me: Player) -> None:
    silent = [one for one in WRAPPED.strip().split("\n") if "notes.md" not in denied(me, one)]
    assert not silent
    for command in ("rtk git status", "doppler run -- npm test", "conda run -n x pytest", "op read op://a/b"):
        assert told(me, command) == "", command


UNKNOWN = """
newtool run -- git stash
newtool git checkout -- .
newtool exec -n x git reset --hard
newtool --command 'git stash'
newtool rm -f notes.md
newtool run -- bash -c 'rm notes.md'
"""


def test_an_unknown_program_before_a_known_command_is_told(me: Player) -> None:
    silent = [one for one in UNKNOWN.strip().split("\n") if "notes.md" not in told(me, one)]
    assert not silent


def test_an_unknown_program_with_other_words_is_not(me: Player) -> None:
    for command in (
        "newtool git status",
        "newtool install notes.md",
        "newtool commit -m 'git stash'",
        "newtool add rm",
    ):
        assert told(me, command) == "", command


def test_a_number_is_no_output(work: Path) -> None:
    assert not effects_of("oxipng -o 4 notes.md", str(work)).writes
    assert [one.path for one in effects_of("oxipng -o out.png notes.md", str(work)).writes] == ["out.png"]


LISTS = """
git status --porcelain | awk '{print $2}' | xargs rm -f
git status --porcelain | cut -c4- | xargs git restore
git status -s | sed 's/^...//' | xargs rm
rm -f $(git status --porcelain | awk '{print $NF}')
git status --porcelain | grep -v '^A' | cut -c4- | while read -r name; do rm "$name"; done
"""


def test_names_in_a_status_are_followed(me: Player) -> None:
    silent = [one for one in LISTS.strip().split("\n") if "notes.md" not in denied(me, one)]
    assert not silent
    new = denied(me, "git status --porcelain | grep '^??' | cut -c4- | xargs rm -rf")
    assert "new.txt" in new and "notes.md" not in new
    for command in ("git status --porcelain | grep '^A' | cut -c4- | xargs rm -f", "git status -s | wc -l"):
        assert told(me, command) == "", command


@pytest.mark.parametrize(
    ("me", "command"),
    [(CLIENTS[0], "git checkout -- $(git diff --name-only)"), (CLIENTS[1], "git ls-files -mo | xargs rm")],
    indirect=["me"],
)
def test_a_late_list_is_never_silent(me: Player, command: str, limits: Limits) -> None:
    limits(listings, SECONDS=0.0)
    verdict = me.ask("Bash", {"command": command}, "")
    assert "notes.md" in verdict.words + verdict.notice or "too slow" in verdict.words, verdict
    assert "no answer in time from `git" in Path(fault_log()).read_text()
    Path(fault_log()).unlink()


HOOKS = {
    "npm": ({".git/hooks/pre-commit": "npm run precommit\n", "package.json": '{"scripts": {"precommit": "lint-staged"}}'},
            "git commit -m b", "notes.md"),
    "husky": ({".husky/pre-commit": "npm run a\n", ".husky/_/pre-commit": "#!/bin/sh\n. h\n",
               "package.json": '{"scripts":{"a":"yarn b","b":"npx lint-staged"}}'},
              "git -c core.hooksPath=.husky/_ commit -m b", "notes.md"),
    "script": ({".git/hooks/pre-commit": "exec sh scripts/pre.sh\n",
                "scripts/pre.sh": "git stash --keep-index -u\nmake test\ngit stash pop\n"}, "git commit -m b", "notes.md"),
    "make": ({".git/hooks/pre-commit": "make check\n", "Makefile": "all:\n\ttrue\ncheck: aside\n\ttrue\n"
              "aside:\n\t@git stash push -q\n"}, "git commit -m b", "notes.md"),
    "add -u": ({".git/hooks/pre-commit": "git add -u\n"}, "git commit -m b", "notes.md"),
    "add -A": ({".git/hooks/pre-commit": "npm run format; git add -A\n", "package.json": '{"scripts":{"format":"true"}}'},
               "git commit -m b", "new.txt"),
    "githooks": ({".githooks/pre-commit": "yarn fix\n", "package.json": '{"scripts": {"fix": "git add ."}}'},
                 "git -c core.hooksPath=.githooks commit -m b", "new.txt"),
    "post-commit": ({".git/hooks/post-commit": "git checkout -- .\n"}, "git commit --no-verify -m b", "notes.md"),
    "clean": ({".git/hooks/post-commit": "git clean -fdq\n"}, "git commit -m b", "new.txt"),
    "post-checkout": ({".git/hooks/post-checkout": "git reset --hard\n"}, "git checkout -q -b topic", "notes.md"),
    "pre-push": ({".git/hooks/pre-push": "git stash -u\n"}, "git push origin HEAD", "notes.md"),
}  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize(("me", "case"), [(CLIENTS[at % 2], case) for at, case in enumerate(HOOKS)], indirect=["me"])
def test_git_commands_in_hooks_are_met(me: Player, work: Path, case: str) -> None:
    files, command, file = HOOKS[case]
    for name, text in files.items():
        program_at(work / name, text if "json" in name or "Make" in name else f"#!/bin/sh\n{text}")
    own = [name for name in files if not name.startswith(".git/")]
    if own:
        git(work, "add", *own)
        git(work, "-c", "core.hooksPath=/dev/null", "commit", "-qm", "hooks")
    assert file in denied(me, command), case
    if case in ("npm", "add -u"):
        assert denied(me, command.replace("commit", "commit --no-verify")) == "", "it leaves the hook out"


@pytest.mark.parametrize("me", CLIENTS[:1], indirect=True)
def test_harmless_hooks_are_silent(me: Player, work: Path) -> None:
    program_at(
        work / ".git/hooks/pre-commit",
        "#!/bin/sh\ngit diff --cached --check\ngit add other.md\nnpm run none\ngit stash list\n# git add -A\n",
    )
    assert told(me, "git commit -m b") == ""


# ------------------------------------------------------------------------------- processes of other sessions

CLIENT = (
    "import socket, subprocess, sys\n"
    "port = socket.create_server(('127.0.0.1', 0))\n"
    "below = subprocess.Popen(['{name}', '600'], executable='/bin/sleep', pass_fds=[port.fileno()])\n"
    "print(below.pid, port.getsockname()[1], flush=True)\n"
    "sys.stdin.read()\n"
)


class Live:
    """A client, as a process with a server below it that has a name of its own and listens at a port."""

    def __init__(self, name: str):
        self.name = name
        argv = [sys.executable, "-c", CLIENT.format(name=name)]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.server, self.port = map(int, self.process.stdout.readline().split())
        self.identity = (self.process.pid, start_time(self.process.pid))

    def end(self) -> None:
        os.kill(self.server, 9)
        self.process.communicate()


@pytest.fixture
def lives(limits: Limits) -> Iterator[tuple[Live, Live]]:
    limits(fence, APART_NS=0)
    name = f"swarmtest-{os.getpid()}"
    found = Live(name + "-mine"), Live(name + "-theirs")
    yield found
    for one in found:
        one.end()


def both(work: Path, lives: tuple[Live, Live], client: str) -> Player:
    mine, theirs = lives
    Player(CLIENTS[client == "claude-code"], work.parent, client=theirs.identity)
    return Player(client, work, client=mine.identity)


@pytest.mark.skipif(sys.platform != "linux", reason="names and ports are looked up in /proc")
@pytest.mark.parametrize("client", CLIENTS)
def test_another_session_s_processes_are_ended_on_purpose_only(
    work: Path, lives: tuple[Live, Live], client: str
) -> None:
    mine, theirs = lives
    me = both(work, lives, client)
    if client == "codex":
        assert denied(me, f"pkill -f {theirs.name}") and denied(me, f"pkill -f {theirs.name}") == ""
        return
    for command in (
        f"pkill -9 -f 'swarmtest-{os.getpid()}-(mine|theirs)'",
        f"killall {theirs.name}", f"kill {theirs.server}", f"kill -9 {theirs.process.pid}",
        f"kill $(pgrep -f {theirs.name})", f"pgrep -f {theirs.name} | xargs kill -9", "killall -r '.*-theirs'",
        f"lsof -ti:{theirs.port} | xargs kill", f"fuser -k {theirs.port}/tcp", f"npx kill-port {theirs.port}",
        f"sudo pkill -u me {theirs.name[:9]}.*theirs -f",
    ):  # fmt: skip
        said = denied(me, command)
        assert str(theirs.server) in said or str(theirs.process.pid) in said, command
        assert "the same command again goes ahead" in said, said
        assert denied(me, command) == "", f"once: {command}"
    said = denied(me, f"pkill -f 'swarmtest-{os.getpid()}-'")
    assert f"Your own alone: `kill {mine.server}`" in said, said
    for command in (
        f"pkill -f {mine.name}", f"kill {mine.server}", f"kill -0 {theirs.server}", f"pkill -CONT -f {theirs.name}",
        f"pgrep -f {theirs.name}", f"lsof -ti:{theirs.port}", f"fuser {theirs.port}/tcp", "pkill -P $$ sleep",
        "kill %1", "kill $!", "kill -l", "pkill -f no-such-program-here",
    ):  # fmt: skip
        assert told(me, command) == "", command


def test_a_session_alone_may_end_what_it_wants(work: Path, lives: tuple[Live, Live]) -> None:
    mine, theirs = lives
    alone = Player("claude-code", work, client=mine.identity)
    assert told(alone, f"kill {theirs.server}; pkill -f {theirs.name}") == ""


def test_at_notice_it_is_told(work: Path, lives: tuple[Live, Live], monkeypatch: pytest.MonkeyPatch) -> None:
    me = both(work, lives, "codex")
    command = f"kill {lives[1].server}"
    monkeypatch.setenv("SWARM_AUTO", "notice")
    assert "ends a process of" in told(me, command)
    assert told(me, command) == "", "once"

"""The first screens of a newcomer: the front page, the demo, the pages' commands, at terminals of any width."""

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from support.fixtures import SWARM, Done, Ground
from support.screen import Played
from support.sessions import ROOT
from support.world import TEXT, World

from swarm_mcp.cli.arguments import NOUNS, words_of
from swarm_mcp.doctor import demo
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

pytestmark = pytest.mark.slow


LONG = "src/importers/spreadsheets/legacy-formats/excel_95_binary_reader.py"
NOTE = "moving the reader of old spreadsheets to the new interface, which takes until this evening"
LABEL = "identity:p {0} platform:cli origin:{0} session:{1}"
SCREENS = [
    [], ["status"], ["locks"], ["locks", "--file", "schema.sql"], ["instances"], ["why", "schema.sql"], ["why", LONG],
    ["log"], ["log", "schema.sql"], ["log", LONG, "--limit", "5"], ["tasks"], ["task", "t-1"], ["messages"], ["runs"], ["auto"],
    ["inspect"], ["kv", "list"], ["bootstrap", "--as", "5f0c2f6e"], ["watch", "--since", "0", "--timeout", "0"],
    ["lock", "new.txt", "--as", "5f0c2f6e"], ["unlock", "--all", "--as", "5f0c2f6e"], ["whoami", "--as", "5f0c2f6e"],
]  # fmt: skip
WIDE = [["status"], ["locks"], ["why", LONG], ["log"], ["inspect"]]  # the widest ones
NAMING = ("", "status", "locks", "instances", "why", "log", "messages", "inspect", "watch", "task", "whoami")
REFUSED = [["lock", LONG], ["unlock", "schema.sql"], ["steal", "schema.sql"], ["transfer", "schema.sql", "--to", "me"]]


@pytest.fixture
def shop(ground: Ground) -> Ground:
    """A checkout with two working agents and a waiting third."""
    claude, codex = (
        ground.session(f"s{number}", LABEL.format(client, session))
        for number, (client, session) in enumerate([("claude-code", "5f0c2f6e"), ("codex", "9b41d7e2")])
    )
    other = ground.session("s9", LABEL.format("claude-code", "9d0c2f6e"))
    ground.lock(claude, "schema.sql", "renumbering migrations")
    ground.lock(claude, LONG, NOTE)
    with ground.store() as store:
        store.locks.acquire_all(codex, request(codex, ["docs"], mode="shared", note="reading"))
        store.queue.join(other, request(other, ["schema.sql"]), 60)
        task = {"type": "implement", "title": "Split the importer into one module for each format", "files": [LONG]}
        made = store.tasks.request(claude, {**task, "description": NOTE})["task"]
        store.tasks.claim(codex, made["id"], True)
        store.messages.send(claude, codex["id"], f"{NOTE}\nsecond line")
        store.kv.put(claude, "plan/latest", NOTE)
    ground.sql("UPDATE tasks SET id = 't-1'")
    ground.swarm("lock", LONG, "--as", codex["id"])
    ground.add(
        "swarm_runs", id="12ab34cd-1", scope=ground.scope, task_id="t-1", instance_id=codex["id"], harness="codex",
        started_at=int(time.time()), updated_at=int(time.time()), cwd=ground.scope, state="running", cost_usd=0.25,
    )  # fmt: skip
    return ground


def screen_of(ground: Ground, argv: list[str], columns: int, code: int = 0) -> Played:
    with Played([*SWARM, *argv], columns=columns, cwd=ground.repo) as played:
        assert played.ended() == code, played.screen.text
        # Only the place of this test has a name that no line has room for.
        broken = [word for word in played.screen.broken if "/pytest" not in word and word not in ground.scope]
        assert broken == [], played.screen.text
        assert all(len(line) <= columns for line in played.screen.lines)
        return played


@pytest.mark.sampled
@pytest.mark.parametrize(("columns", "screens"), [(80, SCREENS), (120, WIDE)])
def test_every_screen_is_in_whole_words_and_names(shop: Ground, columns: int, screens: list[list[str]]):
    for argv in screens:
        shown = screen_of(shop, argv, columns).screen.text
        assert not re.search(r"\d+ ?[a-z]*…|\d…", shown), "ages and numbers are never cut"
        assert not re.search(r"origin:|platform:|session:|\b1[789]\d{8}\b", shown), shown
        assert (argv[0] if argv else "") not in NAMING or "claude-code 5f0c2f6e" in " ".join(shown.split()), shown
        if argv and argv[0] in ("status", "locks", "log", "why"):
            assert f"{shop.scope}/" not in re.sub(r"\s+", "", shown), "paths are near"


def test_a_refusal_is_too(shop: Ground):
    for argv in REFUSED:
        shown = screen_of(shop, [*argv, "--as", "9b41d7e2"], 80, code=1).screen.text
        assert "origin:" not in shown and "platform:" not in shown, shown


def test_watch_says_that_it_waits_behind_what_was(shop: Ground):
    lines = screen_of(shop, ["watch", "--since", "0", "--timeout", "0"], 80).screen.lines
    assert [line for line in lines if line][-1] == "waiting for something to happen ..."
    assert any(line.split() == ["TIME", "WHAT"] for line in lines)


@pytest.mark.parametrize("columns", [1, 12, 30])
def test_a_terminal_may_be_as_narrow_as_it_likes(shop: Ground, columns: int):
    with Played([*SWARM, "log", LONG], columns=columns, cwd=shop.repo) as played:
        assert played.ended() == 0
        assert LONG in "".join(played.screen.text.split())


def test_in_a_pipe_with_colours_no_line_is_folded_and_no_path_parted(shop: Ground):
    out = shop.process("log", LONG, env={**os.environ, "FORCE_COLOR": "1"}).out
    assert "\x1b[" in out and LONG in out and NOTE in out


def test_watch_tells_every_change_of_a_lock(ground: Ground):
    one, two = ground.session("1", "identity:p one"), ground.session("2", "identity:p two")
    ground.lock(one, "f")
    assert ground.swarm("request-lock", "f", "--as", two["id"]).code == 0
    assert ground.swarm("transfer", "f", "--to", two["id"], "--as", one["id"]).code == 0
    shown = ground.swarm("watch", "--since", "0", "--timeout", "0").out
    assert f"asked     one {one['id'][:8]} for f, by two {two['id'][:8]}" in shown, shown
    assert "context" not in shown


FIVE = ["install", "status", "lock", "unlock", "why"]


def front_page(ground: Ground, columns: int = 80, code: int = 0, words: tuple[str, ...] = ()) -> list[str]:
    """The lines that stand on a terminal, with the prompt that follows them."""
    with Played([*SWARM, *words], columns=columns, cwd=ground.repo) as played:
        assert played.ended() == code, played.screen.text
        assert [word for word in played.screen.broken if "/" not in word] == []
        return played.screen.lines


def verbs_in(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")]


@pytest.mark.parametrize("columns", [80, 120])
def test_it_has_the_five_verbs_and_fits_a_screen(ground: Ground, columns: int):
    me = ground.session("me", "identity:ours")
    for number in range(30):
        ground.lock(me, f"src/a-folder-with-a-rather-long-name/{number:02}.txt")
    lines = front_page(ground, columns)
    assert len(lines) <= 24 and max(map(len, lines)) <= columns
    assert verbs_in(lines[lines.index("Start here") :]) == FIVE
    assert "1 session, 30 locks" in lines and "and 25 more locks: swarm-mcp locks" in lines
    assert any("29.txt" in line for line in lines)


def test_who_waits_is_counted(ground: Ground, store: Store):
    me, peer = ground.session("me", "identity:ours"), ground.session("peer", "identity:ours")
    ground.lock(me, "a.txt")
    store.queue.join(peer, request(peer, ["a.txt"]), 60)
    (line,) = (line for line in front_page(ground) if line.startswith("a.txt"))
    assert line.endswith("  1")


def test_an_empty_checkout_is_told_the_first_step(ground: Ground):
    assert "Begin with: swarm-mcp install" in " ".join(" ".join(front_page(ground)).split())
    marketplace_folder().mkdir(parents=True)
    words = " ".join(" ".join(front_page(ground)).split())
    assert "An agent that you start here takes part by itself." in words and "Begin with" not in words


def test_a_store_that_cannot_be_read_hides_no_command(ground: Ground):
    ground.session("me")
    with open(ground.database, "wb") as file:
        file.write(b"no database at all" * 100)
    lines = front_page(ground, code=1)
    assert "swarm-mcp doctor" in " ".join(lines) and verbs_in(lines[lines.index("Start here") :]) == FIVE


def test_in_a_pipe_it_is_the_server(ground: Ground):
    done = subprocess.run(SWARM, input=b"", capture_output=True, cwd=ground.repo, timeout=60)
    assert done.returncode == 0 and b"Start here" not in done.stdout
    assert b"serving MCP on standard input" in done.stderr and done.stderr.count(b"\n") == 1, "and says so"


def test_typed_at_a_terminal_and_read_elsewhere_it_is_the_same_as_text(ground: Ground):
    ours, theirs = os.openpty()
    try:
        done = subprocess.run(SWARM, stdin=theirs, capture_output=True, text=True, cwd=ground.repo, timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and verbs_in(lines[lines.index("Start here") :]) == FIVE and "\x1b" not in done.stdout


SCENES = ["1. One agent, and your uncommitted lines", "2. Two agents", "3. A lock, for a file that must not change"]
GIT_HOOK = {"GIT_DIR": "/nonexistent/.git", "GIT_INDEX_FILE": "/nonexistent/index"}
AGENT_SHELL = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "0c8f5f0e-0000-4000-8000-000000000001"}
SETTINGS = {"SWARM_PROTECT": "off", "SWARM_FAIL": "closed", "NO_COLOR": "1"}


def played(ground: Ground, folder: Path, with_git: bool = True, **more: str) -> Done:
    """Play the demo in a new home, with few programs on PATH and a repository around the temporary folder."""
    programs, home, temporary = (folder / name for name in ("bin", "home", "tmp"))
    for made in (programs, home, temporary, temporary / ".git"):
        made.mkdir()
    for name in ("sh", "grep", *(["git"] if with_git else [])):
        found = shutil.which(name)
        assert found, name
        (programs / name).symlink_to(found)
    environment = {"HOME": str(home), "PATH": str(programs), "TMPDIR": str(temporary), **more}
    return ground.process("demo", env=environment)


def check_that_nothing_is_left(folder: Path) -> None:
    assert list((folder / "home").iterdir()) == []
    assert list((folder / "tmp").iterdir()) == [folder / "tmp" / ".git"]


@pytest.mark.parametrize("more", [{}, GIT_HOOK, AGENT_SHELL, SETTINGS], ids=["plain", "git hook", "agent", "settings"])
@pytest.mark.sampled
def test_it_plays_in_a_new_home_without_clients_and_leaves_nothing(
    more: dict[str, str], ground: Ground, tmp_path: Path
) -> None:
    done = played(ground, tmp_path, **more)
    assert done.code == 0 and "NOT" not in done.out, done
    lines = done.out.splitlines()
    assert [line for line in lines if re.match(r"\d\. ", line)] == SCENES
    assert max(map(len, lines)) <= 80 and "\x1b" not in done.out
    assert [line.strip() for line in lines[-3:]] == list(demo.NEXT) and lines[-4] == "Next:"
    assert len(re.findall("^   refused; its model reads:$", done.out, re.MULTILINE)) == 3
    assert "a person's work" in done.out and "schema.sql: 4 lines (2 to 5)" in done.out
    check_that_nothing_is_left(tmp_path)


def test_without_git_the_lock_is_played(ground: Ground, tmp_path: Path) -> None:
    done = played(ground, tmp_path, with_git=False)
    assert done.code == 0 and "NOT" not in done.out, done
    assert "git is not on PATH" in done.out
    assert [line for line in done.out.splitlines() if re.match(r"\d\. ", line)] == SCENES[2:]
    check_that_nothing_is_left(tmp_path)


def test_a_hook_that_lets_everything_pass_is_told(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    write = demo.bundle.write

    def written(target: Path, local: bool) -> None:
        write(target, local=local)
        for name in demo.SESSIONS:
            file = target / f"integrations/{name}/hooks.json"
            tree = json.loads(file.read_text())
            tree["hooks"]["PreToolUse"][0]["hooks"][0]["command"] = "exit 0"
            file.write_text(json.dumps(tree))

    monkeypatch.setattr(demo.bundle, "write", written)
    said: list[str] = []
    assert demo.play(lambda line, mark, style: said.append(line), lambda doing: None) is False
    assert [line for line in said if line == "   NOT refused"] != []
    assert "   NOT your four lines are still there" in said


def test_all_commands_of_its_last_lines_exist(ground: Ground) -> None:
    for line in demo.NEXT:
        program, verb, *_ = line.split()
        assert program == "swarm-mcp" and ground.process(verb, "--help", env=dict(os.environ)).code == 0


PAGES = ("docs/daily-use.md", "docs/uncommitted-work.md")
# These need a screen, a browser or clients, or go on for ever: other tests run them.
ELSEWHERE = {"top", "page", "watch", "lsp", "try"}
FILES = ("src/schema.sql", "src/importer.py", "migrations/1.sql", "docs/a.md", "go.mod", "theirs.md", "mine.md")


def typed_in(page: str) -> list[tuple[str, list[str]]]:
    """Return each command of ours in the page's blocks: its verb, and its words."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("swarm-mcp ")]
    found = []
    for words in (shlex.split(line, comments=True)[1:] for line in lines):
        noun = words[0] in NOUNS
        found.append((words_of(words[0])[words[1]] if noun else words[0], words))
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("page", PAGES)
def test_each_command_of_a_page_is_carried_out(page: str, world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")  # a person, also where tests have no terminal
    for name, value in (("user.name", "You"), ("user.email", "you@example.com")):
        world.git("config", name, value)
    for name in FILES:
        world.write(name, TEXT)
    world.commit()
    world.write("Makefile", "tidy:\n\ttouch tidied\n")
    world.write("a.txt", TEXT)
    peer = world.session("codex")
    world.session("claude-code", "role:reviewer claude-code")
    for name in FILES[:2]:
        peer.edit(name)
    world.lock(peer, "theirs.md")
    assert world.swarm("lock", "mine.md").code == 0
    instead = {"[FILE...]": "Makefile", "NAME": f"codex {peer.id[:8]}", "request-lock FILE": "theirs.md"}
    said, faults = "", {}
    for verb, words in typed_in(page):
        if verb in ELSEWHERE or verb == "install":
            continue
        given = [instead.get(f"{verb} {word}", instead.get(word, word)) for word in words]
        given = ["mine.md" if word == "FILE" else word for word in given]
        if "--undo" in given:
            given[-1] = re.findall(r"--undo (\w+)", said)[-1]
        done = world.ground.swarm(*given)
        said += done.out
        if done.code:
            faults[shlex.join(words)] = done
    assert faults == {}
    assert said

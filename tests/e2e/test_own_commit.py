"""Sessions in one work tree: commits, undos and sweeps of their own lines, a moved HEAD, and trees taken away."""

import re
import subprocess

import pytest
from support.fixtures import wait_for

from .checks import assert_text
from .client import Client
from .clients import CLIENTS
from .conversation import Conversation
from .coordinator import PATIENCE
from .ground import wait_for as ground_wait_for
from .test_person import typed

pytestmark = pytest.mark.ways("install")


BEFORE = "alpha\nbeta\ngamma\ndelta\nomega\n"


def begin(client: Client, name: str) -> str:
    """Commit a file, change its last line as a person does, and return its name, that no other test has."""
    ground, file = client.ground, f"{client.name}-{name}.md"
    (ground.checkout / file).write_text(BEFORE)
    (ground.checkout / "own.md").unlink(missing_ok=True)  # of the client before
    ground.commit(ground.checkout)
    for name, value in (("user.name", "t"), ("user.email", "t@t")):
        ground.git(ground.checkout, "config", name, value)
    (ground.checkout / file).write_text(BEFORE.replace("omega", "PERSON"))
    return file


def asked(client: Client, *words: str) -> str:
    """Return git's answer in the checkout."""
    command = ["git", *words]
    return subprocess.run(command, cwd=client.ground.checkout, capture_output=True, text=True, check=True).stdout


def commit(message: str) -> tuple[str, dict[str, str]]:
    return ("commit", {"message": message})


def play_two_commits(client: Client) -> None:
    """Two sessions change adjacent lines, and commit them one after the other by their tools."""
    file = begin(client, "two")
    first = [client.replace(file, "beta", "FIRST"), *client.swarm_tools(commit("first"))]
    second = [client.replace(file, "gamma", "SECOND"), client.create("own.md", "SECOND\n")]
    present = BEFORE.replace("beta", "FIRST").replace("gamma", "SECOND").replace("omega", "PERSON")
    with client.held("first", *first, at=1) as session:
        client.run("second", *second, *client.swarm_tools(commit("second")))
        assert "own.md" in client.last_result("second") and "left_out" in client.last_result("second")
        assert asked(client, "show", f"HEAD:{file}") == BEFORE.replace("gamma", "SECOND")
        session.go_on()
    assert (client.ground.checkout / file).read_text() == present, client.results("first")
    assert asked(client, "log", "-2", "--format=%s").split() == ["first", "second"], client.results("first")
    assert asked(client, "show", f"HEAD:{file}") == present.replace("PERSON", "omega")
    assert asked(client, "status", "--porcelain") == f" M {file}\n"


def test_two_sessions_commit_their_parts_of_one_file(client: Client) -> None:
    play_two_commits(client)


def test_a_person_commits_at_a_terminal_what_no_session_wrote(client: Client) -> None:
    file = begin(client, "typed")
    client.run("work", client.replace(file, "beta", "SESSION"), client.create("own.md", "SESSION\n"))
    shown = typed(client, "commit", "-m", "typed", "--dry-run")
    assert shown.stdout.startswith(f"would commit on {asked(client, 'branch', '--show-current').strip()}: {file}\n"), (
        shown
    )
    done = typed(client, "commit", "-m", "typed")
    assert done.returncode == 0, done
    assert f"{file} line 2 ({client.name} " in done.stdout and f"own.md line 1 ({client.name} " in done.stdout
    assert asked(client, "log", "-1", "--format=%s") == "typed\n"
    assert asked(client, "show", f"HEAD:{file}") == BEFORE.replace("omega", "PERSON")
    assert asked(client, "status", "--porcelain") == f" M {file}\n?? own.md\n"
    again = typed(client, "commit", "-m", "again")
    assert again.returncode == 1 and "nothing of yours to commit: " in again.stderr


def test_a_person_s_script_beside_the_only_session_is_the_person_s(client: Client) -> None:
    ground, file = client.ground, begin(client, "script")

    def script(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(ground.bin / "swarm-mcp"), *words], cwd=ground.checkout, env=ground.env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE, start_new_session=True,
        )  # fmt: skip

    present = BEFORE.replace("beta", "SESSION").replace("omega", "PERSON")
    with client.held("work", client.replace(file, "beta", "SESSION"), at=1) as session:
        assert script("undo").returncode == 1 and (ground.checkout / file).read_text() == present
        assert script("whoami").returncode == 1
        done = script("commit", "-m", "script")
        assert done.returncode == 0 and f"{file} line 2 ({client.name} " in done.stdout, done
        session.go_on()
    assert asked(client, "show", f"HEAD:{file}") == BEFORE.replace("omega", "PERSON")
    assert asked(client, "status", "--porcelain") == f" M {file}\n"


def test_an_agent_is_no_person_and_its_orphan_is_its_session_s(client: Client) -> None:
    file = begin(client, "orphan")
    (client.ground.checkout / "as_person.sh").write_text("#!/bin/sh\nexec swarm-mcp $1 --person $2 $3\n")
    (client.ground.checkout / "orphan.sh").write_text(
        "#!/bin/sh\n(setsid sh -c 'while [ $(ps -o ppid= -p $$) = '$$' ]; do :; done; swarm-mcp commit -m orphan "
        f"{file}; echo $? > ended' >/dev/null 2>&1 &)\n"
    )
    deeds = ("commit -m x", f"undo {file}", f"lock {file}")
    refused = [client.shell(f"sh as_person.sh {deed}") for deed in deeds]
    client.run("work", client.replace(file, "beta", "SESSION"), *refused, client.shell("sh orphan.sh"))
    told = client.results("work")
    assert sum("--person is for persons" in text for text in told) == len(deeds), told
    wait_for((client.ground.checkout / "ended").exists)
    assert asked(client, "log", "-1", "--format=%s") == "orphan\n", told
    assert asked(client, "show", f"HEAD:{file}") == BEFORE.replace("beta", "SESSION")
    assert "PERSON" in (client.ground.checkout / file).read_text()
    for name in ("ended", "orphan.sh", "as_person.sh"):
        (client.ground.checkout / name).unlink()


def test_an_agent_s_shell_commits_its_session_s_lines(client: Client) -> None:
    file = begin(client, "shell")
    command = "swarm-mcp commit -m shell"
    client.run("shell", client.replace(file, "beta", "SESSION"), client.shell(command))
    assert asked(client, "log", "-1", "--format=%s") == "shell\n", client.results("shell")
    assert asked(client, "show", f"HEAD:{file}") == BEFORE.replace("beta", "SESSION")


def test_the_commit_tool_takes_the_lines_of_commands_of_a_session_alone(client: Client) -> None:
    file = f"{client.name}-commands.md"
    made = client.ground.checkout / "own.sh"
    made.write_text(f"#!/bin/sh\necho BUILT >> {file}\n")
    made.chmod(0o755)
    begin(client, "commands")
    commands = (f"echo ADDED >> {file}", f"sed -i s/beta/EDITED/ {file}", "./own.sh")
    calls = [client.shell(command) for command in commands]
    client.run("commands", *calls, *client.swarm_tools(commit("commands")))
    after = BEFORE.replace("beta", "EDITED") + "ADDED\nBUILT\n"
    assert (client.ground.checkout / file).read_text() == after.replace("omega", "PERSON")
    assert asked(client, "show", f"HEAD:{file}") == after, client.results("commands")
    assert asked(client, "log", "-1", "--format=%s") == "commands\n"


COMMITTED = "one\ntwo\nthree\nfour\nfive\n"
OTHERS = "one\ntwo\nPEER\nfour\nPERSON\n"
NAMED = re.compile(r"`(swarm-mcp undo [^`]+)`")


@pytest.mark.parametrize("command", ["git checkout .", "git stash"])
@pytest.mark.parametrize("name", CLIENTS)
def test_a_denied_sweep_names_the_undo_of_the_session_s_own_lines(
    both: dict[str, Client], name: str, command: str
) -> None:
    client, (peer,) = both[name], [one for one in both.values() if one.name != name]
    ground = client.ground
    (ground.checkout / "shared.md").write_text(COMMITTED)
    (ground.checkout / "own.md").write_text(COMMITTED)
    ground.commit(ground.checkout)
    (ground.checkout / "shared.md").write_text(COMMITTED.replace("five", "PERSON"))
    with Conversation(client) as session, Conversation(peer) as other:
        other.run("peer", peer.replace("shared.md", "three", "PEER"))
        session.run("mine", client.replace("shared.md", "one", "MINE"), client.replace("own.md", "one", "MINE"))
        session.run("sweep", client.shell(command))
        assert_text(client, "shared.md", OTHERS.replace("one", "MINE"))
        named = NAMED.search(client.last_result("sweep"))
        assert named, client.last_result("sweep")
        session.run("undo", client.shell(named.group(1)))
        assert_text(client, "shared.md", OTHERS)
        assert_text(client, "own.md", COMMITTED)
        back = NAMED.search(client.last_result("undo"))
        assert back, client.last_result("undo")
        session.run("back", client.shell(back.group(1)))
        assert_text(client, "shared.md", OTHERS.replace("one", "MINE"))
        assert_text(client, "own.md", COMMITTED.replace("one", "MINE"))


UNDO_COMMITTED = "one\ntwo\nthree\n"
PERSONS = "one\ntwo\nthree\na person's\n"


def undo_begin(client: Client) -> None:
    """Commit a file, and change it as a person does."""
    file = client.ground.checkout / "work.md"
    file.write_text(UNDO_COMMITTED)
    (client.ground.checkout / "own.md").unlink(missing_ok=True)  # of the client before
    client.ground.commit(client.ground.checkout)
    file.write_text(PERSONS)


def test_the_model_takes_its_own_work_back(client: Client) -> None:
    undo_begin(client)
    steps = [client.replace("work.md", "one", "ONE"), client.create("own.md", "own\n")]
    client.run("undo", *steps, *client.swarm_tools(("undo", {})))
    assert "undo_id" in client.last_result("undo"), client.last_result("undo")
    assert_text(client, "work.md", PERSONS)
    assert not (client.ground.checkout / "own.md").exists()


def test_a_person_takes_a_session_s_work_back_and_that_too(client: Client) -> None:
    undo_begin(client)
    run = client.run("work", client.replace("work.md", "one", "ONE"), client.create("own.md", "own\n"))
    assert_text(client, "work.md", PERSONS.replace("one", "ONE"))
    done = client.ground.coordinator.json("undo", "--session", run.session)
    assert_text(client, "work.md", PERSONS)
    assert not (client.ground.checkout / "own.md").exists()
    client.ground.coordinator.json("undo", "--undo", done["id"])
    assert_text(client, "work.md", PERSONS.replace("one", "ONE"))
    assert_text(client, "own.md", "own\n")


GIT = "git -c user.name=e2e -c user.email=e2e@localhost"
PEER = "the-night-shift"
# the client of the session under test, and its model: one that refuses to overwrite unread files, one that does not
SESSIONS = [("claude-code", "claude-haiku-4-5"), ("claude-code", "claude-opus-5-5"), ("codex", "")]


@pytest.fixture(params=SESSIONS, ids=["-".join(filter(None, one)) for one in SESSIONS])
def pair(
    request: pytest.FixtureRequest, both: dict[str, Client], monkeypatch: pytest.MonkeyPatch
) -> tuple[Client, Client]:
    """The session's client, with its model, and the other one's."""
    name, model = request.param
    (other,) = set(CLIENTS) - {name}
    if model:
        monkeypatch.setitem(both[name].ground.env, "ANTHROPIC_MODEL", model)
    return both[name], both[other]


def branch_of(client: Client) -> str:
    return asked(client, "branch", "--show-current").strip()


@pytest.mark.promise("HEAD is not moved under another session without a word", only=("codex",))
def test_a_switch_is_denied_once_and_the_other_is_told_before_its_commit(pair: tuple[Client, Client]) -> None:
    client, peer = pair
    first = branch_of(client)
    client.ground.git(client.ground.checkout, "branch", "feature")
    commit = f"{GIT} commit -q --allow-empty -m night"
    with Conversation(client) as session, Conversation(peer, env={f"SWARM_{peer.prefix}_LABEL": PEER}) as other:
        client.ground.models.script("works", *(peer.shell(command) for command in ("ls", commit, commit)))
        before_the_commit = peer.hold("works", 1)
        other.say("Please <<play works>> now.")
        assert before_the_commit.wait_reached()
        session.run("tries", client.shell("git switch feature"))
        told = client.last_result("tries")
        assert PEER in told and "git worktree add" in told and "the same command again goes ahead" in told, told
        assert branch_of(client) == first
        session.run("again", client.shell("git switch feature"))
        assert branch_of(client) == "feature", client.last_result("again")

        before_the_commit.open()
        other.wait()
        _listed, told, meant = peer.results("works")
        assert "switched this work tree" in told and f"it was on {first}, and is on feature now" in told, told
        assert "PreToolUse" in told and "PreToolUse" not in meant, (told, meant)
        assert asked(client, "log", "--format=%s").split("\n").count("night") == 1


def test_the_denial_of_a_whole_write_shows_the_change_and_a_text_that_keeps_it_passes(
    pair: tuple[Client, Client],
) -> None:
    client, peer = pair
    file = client.ground.checkout / "whole.md"
    file.write_text("alpha\nbeta\ngamma\n")
    client.ground.commit(client.ground.checkout)

    def overwrites(middle: str) -> str:
        return f"cat > whole.md <<'EOF'\nMINE\n{middle}\ngamma\nEOF\n"

    with Conversation(client) as session, Conversation(peer) as other:
        session.run("reads", client.shell("cat whole.md"))
        other.run("changes", peer.shell("sed -i s/beta/PEER/ whole.md"))
        for script in ("first", "second"):
            session.run(script, client.shell(overwrites("beta")))
            told = client.last_result(script)
            assert "| -beta" in told and "| +PEER" in told, told
            assert file.read_text() == "alpha\nPEER\ngamma\n", "denied, however often it is tried"
        session.run("third", client.shell(overwrites("PEER")))
        assert file.read_text() == "MINE\nPEER\ngamma\n", client.last_result("third")


TREE = ".claude/worktrees/wt"


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("command", [f"git worktree remove --force {TREE}", f"mv {TREE} ../moved"], ids=["git", "mv"])
def test_the_tree_of_a_live_session_is_taken_once_both_know(both: dict[str, Client], name: str, command: str) -> None:
    client, (other,) = both[name], set(CLIENTS) - {name}
    peer, ground = both[other], client.ground
    ground.git(ground.checkout, "worktree", "add", "-q", "--detach", TREE)
    tree = ground.checkout / TREE
    ground.git(tree, "commit", "-q", "--allow-empty", "-m", "Parse empty lines")
    words = ["git", "rev-parse", "--short", "HEAD"]
    lost = subprocess.run(words, cwd=tree, capture_output=True, text=True, check=True).stdout.strip()
    with Conversation(client) as session, Conversation(peer, {f"SWARM_{peer.prefix}_LABEL": PEER}, tree) as tenant:
        tenant.run("works", peer.shell("ls"))
        session.run("tries", client.shell(command))
        told = client.last_result("tries")
        assert f"in which {PEER}" in told and f'{lost} "Parse empty lines"' in told, told
        assert (tree / ".git").exists(), "it was denied"
        assert ground_wait_for(lambda: notices(client), 60)
        tenant.run("hears", peer.shell("ls"))
        assert "was stopped once from a call that would" in peer.said("hears") and lost in peer.said("hears")
        session.run("again", client.shell(command))
        assert not tree.exists(), client.last_result("again")
        assert ground_wait_for(lambda: notices(client), 60)
        tenant.run("asks", peer.shell("ls"))
        if peer.name == "codex":
            assert notices(client), "it starts no hook in a folder that has gone: the message waits"
            return
        assert "makes a call to" in peer.said("asks") and f"branch NAME {lost}" in peer.said("asks")


def notices(client: Client) -> list[tuple[object, ...]]:
    """Return the messages that the next hook of their session tells."""
    return client.ground.coordinator.query("SELECT message_id FROM swarm_notices")

"""One session beside a person or a peer with uncommitted work: commands that would destroy it, and its news."""

import pytest

from .client import Call, Client
from .clients import ClaudeCode, Codex
from .ground import has_text
from .played_peer import PlayedPeer

pytestmark = pytest.mark.ways("install")


BEFORE = "alpha\nbeta\ngamma\n"
AFTERNOON = "alpha\nbeta\nan\nafternoon\ngamma\n"
COMMANDS = {
    "checkout of a file": "git checkout -- FILE",
    "checkout": "git checkout .",
    "restore": "git restore FILE",
    "reset": "git reset --hard",
    "stash": "git stash -u",
    "stash around a pull": "git stash && git pull; git stash pop",
    "autostash": "git rebase --autostash HEAD",
    "clean": "git clean -fd",
    "switch": "git switch -f -c side",
    "remove": "rm -f FILE NEW",
    "remove a folder": "rm -rf ./*",
    "overwrite": "echo x > FILE",
}
PROMISE = pytest.mark.promise("a person's uncommitted work is not lost at keep, also beside one session")


def calls(client: Client, file: str, new: str) -> list[Call]:
    """Return the calls of the commands, and of the client's own tool that replaces a whole file."""
    commands = [client.shell(one.replace("FILE", file).replace("NEW", new)) for one in COMMANDS.values()]
    return [*commands, client.create(file, "other\n")]


def put_aside(client: Client) -> None:
    """Make a stash entry as a person: a change of other.md."""
    ground = client.ground
    (ground.checkout / "other.md").write_text("an idea\n")
    ground.git(ground.checkout, "stash", "push", "-q", "--", "other.md")


def play_a_person_s_work(client: Client) -> None:
    """Have the client's model try each command on a person's change: all are denied, and the files stay."""
    ground = client.ground
    (ground.checkout / "work.md").write_text(BEFORE)
    ground.commit(ground.checkout)
    put_aside(client)
    (ground.checkout / "work.md").write_text(AFTERNOON)
    (ground.checkout / "idea.md").write_text("an\nidea\n")
    client.run("tries", *calls(client, "work.md", "idea.md"), client.shell("git stash drop"))
    assert (ground.checkout / "work.md").read_text() == AFTERNOON, client.results("tries")
    assert (ground.checkout / "idea.md").read_text() == "an\nidea\n"
    *told, about_the_entry = client.results("tries")
    assert len(told) == len(COMMANDS) + 1
    assert "No session at work has made it" in about_the_entry and "other.md" in about_the_entry, about_the_entry
    assert (ground.checkout / ".git" / "refs" / "stash").exists()
    by_us = [said for said in told if "a person's work" in said]
    assert len(by_us) >= len(COMMANDS), told
    assert "work.md: 2 lines (3 to 4)" in by_us[0] and "protect off --for 5m" in by_us[0]
    assert any("idea.md: a new file, 2 lines" in said for said in by_us)


@PROMISE
def test_a_person_s_work_stays(client: Client) -> None:
    play_a_person_s_work(client)


@pytest.mark.promise("a session may throw away its own work", only=("codex",))
def test_a_session_may_throw_away_its_own_work(client: Client) -> None:
    ground = client.ground
    (ground.checkout / "work.md").write_text(BEFORE)
    ground.commit(ground.checkout)
    steps: list[Call] = []
    for command in COMMANDS.values():
        begin = f"git checkout -q -f HEAD; git stash clear; printf '{AFTERNOON}' > work.md; echo x > own.md"
        own = command.replace("FILE", "work.md").replace("NEW", "own.md").replace("./*", "./own.md")
        steps += [client.shell(begin), client.shell(own)]
    client.run("own", *steps)
    assert not any("a person's work" in said for said in client.results("own")), client.results("own")


def test_a_file_that_was_hidden_from_git_stays(client: Client) -> None:
    ground = client.ground
    idea, excluding = ground.checkout / "idea.md", ground.checkout / ".git" / "info" / "exclude"
    idea.write_text("an\nidea\n")
    excluding.parent.mkdir(exist_ok=True)
    while not excluding.exists() or excluding.stat().st_mtime <= idea.stat().st_mtime:
        excluding.write_text("idea.md\n")
    commands = ("rm -f idea.md", "git clean -fdX", "git clean -fdx", "echo x > idea.md")
    client.run("hidden", *map(client.shell, commands))
    told = client.results("hidden")
    assert idea.read_text() == "an\nidea\n", told
    assert len([said for said in told if "a person's work" in said]) == len(commands), told


@pytest.mark.only("claude-code")
@pytest.mark.promise("uncommitted work is not lost at keep, whatever writes")
def test_a_peer_s_work_stays(client: Client) -> None:
    """The same commands beside a session of another process that has written the files."""
    ground, peer = client.ground, PlayedPeer(client.ground)
    (ground.checkout / "work.md").write_text(BEFORE)
    ground.commit(ground.checkout)
    peer.edits("work.md", "gamma", "an\nafternoon\ngamma")
    peer.creates("idea.md", "an\nidea\n")
    client.run("tries", *calls(client, "work.md", "idea.md"))
    told = client.results("tries")
    assert (ground.checkout / "work.md").read_text() == AFTERNOON, told
    assert (ground.checkout / "idea.md").read_text() == "an\nidea\n"
    assert len([said for said in told if "PreToolUse" in said]) >= len(COMMANDS), told


@pytest.mark.only("codex")
@PROMISE
def test_a_person_s_work_stays_in_code_mode(client: Client) -> None:
    assert isinstance(client, Codex)
    client.model = client.code_model
    play_a_person_s_work(client)


@pytest.mark.only("claude-code")
@pytest.mark.parametrize("model", ["claude-opus-4-1-20250805", "claude-opus-4-7"])
def test_a_person_s_work_stays_with_older_and_newer_models(client: Client, model: str) -> None:
    client.ground.env["ANTHROPIC_MODEL"] = model
    try:
        play_a_person_s_work(client)
    finally:
        del client.ground.env["ANTHROPIC_MODEL"]


@pytest.mark.only("claude-code")
@pytest.mark.parametrize(
    ("mode", "answer"), [("acceptEdits", "no"), ("acceptEdits", "yes"), ("auto", "no"), ("bypassPermissions", "yes")]
)
@pytest.mark.promise("a person is asked in each mode", only=("acceptEdits-yes", "auto-no"))
def test_claude_code_asks_its_user_at_a_terminal(client: Client, mode: str, answer: str) -> None:
    """The person's answer counts, in modes that ask nothing by themselves, too. Contents that it lets go are kept."""
    assert isinstance(client, ClaudeCode)
    ground = client.ground
    client._permissions = ("--permission-mode", mode, "--allowed-tools", "Bash")
    client.ready = r"accept edits on|auto mode on|bypass permissions on"
    (ground.checkout / "work.md").write_text(BEFORE)
    ground.commit(ground.checkout)
    (ground.checkout / "work.md").write_text(AFTERNOON)
    with client.interactive({"IS_SANDBOX": "1"}) as terminal:  # else it refuses the last mode to root
        client.models.script("ask", client.shell("git checkout -- work.md"))
        terminal.enter("Please <<play ask>> now.")
        terminal.wait_for(r"discard 2 uncommitted\s+lines\s+of\s+work.md", 40)
        assert (ground.checkout / "work.md").read_text() == AFTERNOON
        if answer == "yes":
            assert terminal.press_until("Enter", lambda: has_text(ground.checkout / "work.md", BEFORE))
        else:
            assert terminal.press_until("Escape", lambda: "discard 2 uncommitted" not in terminal.screen())
    if answer == "no":
        assert (ground.checkout / "work.md").read_text() == AFTERNOON
        return
    assert "work.md" in ground.coordinator.text("restore", "--list")


@pytest.mark.promise("a session hears of others' uncommitted changes", only=("codex",))
def test_a_session_is_told_of_others_changes_when_it_starts_and_at_its_next_turn(client: Client) -> None:
    first, second = client.create("plan.md", "mine\n"), client.create("sub/more.md", "mine\n")
    with client.held("peer", first, second, at=1) as peer, client.interactive() as terminal:
        client.turn(terminal, "one")
        assert _news(client, "one") == ["plan.md"]
        gate = client.hold("peer", 2)
        peer.gate.open()
        assert gate.wait_reached()
        client.turn(terminal, "two")
        assert _news(client, "two") == ["plan.md", "sub/more.md"], "each once, with what it was told before"
        client.ground.commit(client.ground.checkout)
        client.run("three")
        assert _news(client, "three") == []
        gate.open()


def _news(client: Client, script: str) -> list[str]:
    """The files that the model has been told of by then, as often as it was."""
    by = f": by {client.name} "
    lines = [line for line in client.context(script).splitlines() if line.startswith("- ") and by in line]
    assert all(" ago" in line or " now" in line for line in lines), lines
    return [name for line in lines for name in line[2:].partition(": by ")[0].split(", ")]

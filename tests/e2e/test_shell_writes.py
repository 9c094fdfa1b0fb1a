"""Writes that do not look like writes, through the shell, git, other servers' tools: the effect counts."""

import pytest

from .checks import OPAQUE, assert_denied, assert_text, assert_untouched
from .client import Client
from .ground import wait_for
from .other_server import calls_of

CHANGE = ("notes.md", "line one", "line two")
WRITES = (
    "echo 'line two' | tee notes.md",
    "sed -i 's/line one/line two/' notes.md",
    """python3 -c "open('notes.md', 'w').write('line two')" """,
    "cat > notes.md <<'EOF'\nline two\nEOF",
    "git checkout -- notes.md",
)
OTHER_WRITES = (
    "cd sub && mv ../notes.md here.md",
    'for f in *.md; do printf "line two\\n" > "$f"; done',
    """bash -c 'rm -f "$PWD/notes.md"'""",
    "find . -name 'no*.md' -exec sed -i s/one/two/ {} +",
    "git add -A && git commit -qm 'all of it'",
)
READS = (
    "cat notes.md && grep -n 'line > one' notes.md; wc -l < notes.md",
    "git status --short && git diff HEAD -- notes.md && git log --oneline | head -3",
    """python3 -c "print(open('notes.md').read())" > /dev/null 2>&1""",
    "sed -n '1,5p' notes.md | tee /dev/null",
    "find . -name '*.md' -not -path './.git/*' | xargs wc -l",
)


@pytest.mark.promise("the effect counts, not the tool", only=("install",))
@pytest.mark.each_way
@pytest.mark.from_clone
def test_a_denied_edit_is_denied_in_every_other_dress(client: Client) -> None:
    checkout = client.ground.checkout
    (checkout / "notes.md").write_text("line one\nhalf done\n")  # else a checkout of it would change nothing
    before = (checkout / "notes.md").read_bytes()
    client.ground.coordinator.peer_lock("notes.md")
    client.run("work", client.replace(*CHANGE), *(client.shell(command) for command in WRITES))
    told = client.results("work")
    assert len(told) == 1 + len(WRITES)
    assert [text[:200] for text in told if "swarm lock blocked" not in text] == []
    assert_denied(client, "work", "notes.md", before=before)


@pytest.mark.ways("install")
def test_loops_finds_and_commits_too(client: Client) -> None:
    checkout = client.ground.checkout
    (checkout / "notes.md").write_text("line one\nhalf done\n")
    before = (checkout / "notes.md").read_bytes()
    client.ground.coordinator.peer_lock("notes.md")
    client.run("work", *(client.shell(command) for command in OTHER_WRITES))
    told = client.results("work")
    assert [text[:200] for text in told if "swarm lock blocked" not in text] == []
    assert_denied(client, "work", "notes.md", before=before)
    assert_text(client, "other.md", "other\n")


@pytest.mark.promise("reading is never denied", only=("codex",))
def test_reading_a_locked_file_is_free(client: Client) -> None:
    client.ground.coordinator.peer_lock("notes.md")
    client.run("work", *(client.shell(command) for command in READS))
    told = client.results("work")
    assert len(told) == len(READS)
    assert not [text for text in told if "swarm" in text]
    assert "other sessions hold" not in client.said("work")
    assert "line one" in told[0]
    assert_untouched(client, "notes.md")


@pytest.mark.ways("install")
def test_writing_beside_a_lock_is_free(client: Client) -> None:
    client.ground.coordinator.peer_lock("notes.md")
    client.run("work", client.shell("sed -i s/other/another/ other.md && echo new > sub/new.md && rm sub/deep.md"))
    assert_text(client, "other.md", "another\n")
    assert_text(client, "sub/new.md", "new\n")


@pytest.mark.promise("a change that no check could see is noticed and can be undone", only=("claude-code",))
def test_what_nobody_could_see_is_noticed_and_can_be_undone(client: Client) -> None:
    checkout, coordinator = client.ground.checkout, client.ground.coordinator
    (checkout / "build.py").write_text(OPAQUE)
    holder = coordinator.peer_lock("notes.md")
    client.run("work", client.shell("python3 build.py"), client.shell("cat notes.md"))
    said = client.said("work")
    assert "other sessions hold" in said, "beforehand: a line about the locks nearby"
    assert "swarm-mcp restore" in said, "afterwards: what to do"
    assert_text(client, "notes.md", "spoilt\n")
    told = "SELECT content FROM messages WHERE recipient = ? AND content LIKE '%notes.md%'"
    inbox = wait_for(lambda: coordinator.query(told, holder), 60)
    assert inbox and "python3 build.py" in inbox[0][0] and "restore" in inbox[0][0], inbox
    coordinator.text("restore", str(checkout / "notes.md"))
    assert_untouched(client, "notes.md")


@pytest.mark.ways("install")
def test_strict_lets_nothing_uncertain_run(client: Client) -> None:
    (client.ground.checkout / "build.py").write_text(OPAQUE)
    client.ground.coordinator.peer_lock("notes.md")
    client.run("work", client.shell("python3 build.py"), env={"SWARM_STRICT": "1"})
    assert_denied(client, "work", "notes.md")


@pytest.mark.ways("install")
def test_a_lock_on_the_repository_s_state(client: Client) -> None:
    coordinator = client.ground.coordinator
    peer = coordinator.register_peer()
    coordinator.text("lock", "--git", "--note", "careful surgery", "--as", peer)
    (client.ground.checkout / "other.md").write_text("another\n")
    client.run("work", client.shell("git add other.md && git commit -qm one"), client.shell("git log --oneline"))
    told = client.results("work")
    assert "swarm lock blocked" in told[0] and ".git" in told[0]
    assert "Start" in told[1] and "one" not in told[1].split()


@pytest.mark.promise("the effect counts, not the tool")
@pytest.mark.ways("install")
def test_another_server_s_tool(client: Client) -> None:
    """The table of tools that write knows the common names; reading stays free."""
    client.ground.coordinator.peer_lock("notes.md")
    file = str(client.ground.checkout / "notes.md")
    used = (("read_file", {"path": file}), ("write_file", {"path": file, "content": "line two\n"}))
    calls, extra = calls_of(client, *used)
    client.run("work", *calls, extra=extra)
    told = client.results("work")
    assert "line one" in told[-2], told
    assert_denied(client, "work", "notes.md")

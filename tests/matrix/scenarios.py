"""The scenarios that decide about a client: each is played with every family of its models.

A scenario returns HELD when swarm's promise held, and raises AssertionError when it did not. It raises NotThere where the
client or its models lack a tool for it. The scenario of the client's own guard returns ``refuses`` or ``writes``.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from e2e.checks import OPAQUE, assert_denied, assert_text, assert_untouched, play_a_compaction
from e2e.client import Call, Client, Live
from e2e.clients import ClaudeCode, Codex
from e2e.ground import FILES, wait_for
from e2e.more import OtherClient
from e2e.pi import Pi
from e2e.played_peer import PlayedPeer

from swarm_mcp.play.clients import SERVER
from swarm_mcp.runtimes import runtime
from swarm_mcp.runtimes.installed import YES

BEFORE = "alpha\n\n\nbeta\n"  # changes of both lines can be merged
MINE = BEFORE.replace("alpha", "MINE")
SECONDS = 60  # until the end of a process has freed its locks
NEW_FILES_ONLY = ("copilot", "cline", "auggie")  # their tools for whole files refuse one that is there
EDITOR_BELOW = ("cline",)  # its sub-agents have the tool of the other models, whatever the model
HELD, LOCKED_FILES, MERGED = "held", "locked files", "merged"


class NotThere(Exception):
    """The client has no such thing; the message says so in a few words."""


class Family(NamedTuple):
    """Models that a client treats alike, by one of their names.

    patches    their tool for changes is apply_patch, in a client with other tools for other models
    code_mode  the client can give them a tool for scripts that call the others
    """

    model: str
    patches: bool = False
    code_mode: bool = False


class Played(NamedTuple):
    """A client with the plugin, on a fresh checkout and store, and the family of the model that plays."""

    client: Client
    family: Family

    def change(self, file: str, old: str, new: str) -> list[Call]:
        """Return the calls that replace one line by the tool that this family has for it, after a look where it must."""
        if self.family.patches:
            return self.patch(f"*** Update File: {file}\n@@\n-{old}\n+{new}")
        return self.client.change(file, old, new)

    def write(self, file: str, text: str) -> list[Call]:
        """Return the calls that write a whole file. Raises NotThere for a file that the client's tool does not replace."""
        if self.client.name in NEW_FILES_ONLY and self.is_there(file):
            raise NotThere("its tool makes new files only")
        if self.family.patches:
            lines = "\n".join(f"+{line}" for line in text.splitlines())
            return self.patch(f"*** Add File: {file}\n{lines}")
        return [self.client.create(file, text)]

    def patch(self, body: str) -> list[Call]:
        """Return the call of apply_patch. Raises NotThere."""
        if isinstance(self.client, Codex):
            return [self.client.patch(body)]
        if not isinstance(self.client, OtherClient) or runtime(self.client.name).coverage.patches != YES:
            raise NotThere("no tool for patches")
        return self.client.patch(body)

    def committed(self, file: str, text: str = BEFORE) -> None:
        """Add a file to the checkout, and commit it."""
        (self.client.ground.checkout / file).write_text(text)
        self.client.ground.commit(self.client.ground.checkout)

    def is_there(self, file: str) -> bool:
        """Return True if the checkout has the file."""
        return (self.client.ground.checkout / file).exists()

    def text(self, file: str) -> str:
        """Return the content of a file of the checkout."""
        return (self.client.ground.checkout / file).read_text()


Scenario = Callable[[Played], str]
SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str) -> Callable[[Scenario], Scenario]:
    """Enter a function into SCENARIOS under the words that head its column."""

    def entered(function: Scenario) -> Scenario:
        SCENARIOS[name] = function
        return function

    return entered


@scenario(LOCKED_FILES)
def _locked_files(played: Played) -> str:
    """No tool of its models, no command and no other server writes a locked file, or a person's line away.

    A client that `swarm-mcp doctor --play` can start is played by that instead, in each permission mode.
    """
    client, ground = played.client, played.client.ground
    played.committed("shared.md")
    (ground.checkout / "shared.md").write_text(BEFORE.replace("beta", "PERSON"))
    peer = ground.coordinator.peer_lock("notes.md")
    for file in ("new.md", "other.md", "sub/deep.md"):
        ground.coordinator.lock(peer, file, "mine")
    calls = [*played.change("notes.md", "line one", "x"), *played.write("new.md", "x\n")]
    calls.append(client.shell("sed -i s/other/x/ other.md"))
    ways = 3
    if runtime(client.name).coverage.patches == YES:
        calls += played.patch("*** Add File: free.md\n+free\n*** Update File: notes.md\n@@\n-line one\n+x")
        ways += 1
    if runtime(client.name).coverage.other_tools == YES:
        assert isinstance(client, OtherClient)
        client.add_server("files", SERVER["command"], SERVER["args"])
        given = {"path": str(ground.checkout / "sub/deep.md"), "content": "x\n"}
        calls += client.server_tool("files", "write_file", given)
        ways += 1
    calls += [client.shell("git checkout -- shared.md"), *played.write("free.md", "free\n")]
    client.run("work", *calls)
    told = [text for text in client.results("work") if "swarm lock blocked" in text]
    assert len(told) == ways, client.results("work")
    assert not played.is_there("new.md"), "new.md was made"
    for file, text in FILES.items():
        assert played.text(file) == text, f"{file} was written"
    assert "PERSON" in played.text("shared.md"), f"lost: {client.results('work')}"
    assert played.text("free.md").rstrip() == "free"
    return HELD


@scenario("sub-agent")
def _sub_agent(played: Played) -> str:
    """A sub-agent is denied as its session is."""
    client = played.client
    if runtime(client.name).coverage.subagents != YES:
        raise NotThere("no sub-agents, or each is a session of its own")
    client.ground.coordinator.peer_lock("notes.md")
    change = played.change
    if client.name in EDITOR_BELOW:
        change = client.change
    client.models.script("errand", *change("notes.md", "line one", "line two"))
    client.run("work", *_errand(client))
    if isinstance(client, Codex) and "spawn_agent" not in json.dumps(client.exchanges("work")[0].body):
        raise NotThere("no tool that starts one")
    assert wait_for(lambda: client.results("errand"), SECONDS), "the sub-agent was not started"
    assert any("swarm lock blocked" in text for text in client.results("errand")), client.results("errand")
    assert_untouched(client, "notes.md")
    return HELD


def _errand(client: Client) -> list[Call]:
    try:
        return client.sub_agent("errand")
    except NotImplementedError:
        raise NotThere("not driven") from None


@contextmanager
def _changed_by_a_peer(played: Played, before: list[Call], after: list[Call]) -> Iterator[None]:
    """Play `before`, have a peer change shared.md, and play `after`; the block judges the outcome."""
    peer = PlayedPeer(played.client.ground)
    start = before or [played.client.shell("true")]
    with played.client.held("work", *start, *after, at=len(start)) as live:
        peer.edits("shared.md", "beta", "PEER")
        live.go_on()
    yield


@scenario("unread overwrite")
def _unread_overwrite(played: Played) -> str:
    """A whole-file write over a peer's change that the session has not seen loses nothing of it.

    Return ``merged``, ``denied``, or ``refused``: by the client itself.
    """
    played.committed("shared.md")
    with _changed_by_a_peer(played, played.client.look("shared.md"), played.write("shared.md", MINE)):
        assert "PEER" in played.text("shared.md"), f"lost: {played.client.results('work')}"
    if "MINE" in played.text("shared.md"):
        return MERGED
    return "denied" if "swarm" in played.client.last_result("work") else "refused"


@scenario("its own guard")
def _own_guard(played: Played) -> str:
    """Return the client's own answer to an unread overwrite: ``refuses`` or ``writes``."""
    played.committed("shared.md")
    played.client.ground.env["SWARM_PROTECT"] = "off"
    try:
        with _changed_by_a_peer(played, played.client.look("shared.md"), played.write("shared.md", MINE)):
            return "refuses" if "PEER" in played.text("shared.md") else "writes"
    finally:
        del played.client.ground.env["SWARM_PROTECT"]


@scenario("read, then write")
def _read_then_write(played: Played) -> str:
    """After a look at the change the session writes."""
    played.committed("shared.md")
    after = [*played.client.look("shared.md"), *played.write("shared.md", MINE.replace("beta", "PEER"))]
    with _changed_by_a_peer(played, [], after):
        assert played.text("shared.md").split() == ["MINE", "PEER"], played.client.results("work")
    return HELD


@scenario("git sweep")
def _git_sweep(played: Played) -> str:
    """Git commands that would throw a peer's uncommitted change away are denied."""
    played.committed("shared.md")
    commands = [played.client.shell(command) for command in ("git checkout .", "git stash", "git reset --hard")]
    with _changed_by_a_peer(played, [], commands):
        assert "PEER" in played.text("shared.md"), f"lost: {played.client.results('work')}"
    return HELD


@scenario("resume")
def _resume(played: Played) -> str:
    """A resumed session is checked."""
    first = played.client.run("first", *played.write("new.md", "new\n"))
    if not first.session:
        raise NotThere("not driven: its output names no session")
    played.client.ground.coordinator.peer_lock("notes.md")
    played.client.run("second", *played.change("notes.md", "line one", "line two"), resume=first.session)
    assert_denied(played.client, "second", "notes.md")
    return HELD


@scenario("compact")
def _compact(played: Played) -> str:
    """A session that was compacted is the same, and checked."""
    client = played.client
    if not client.compacted or isinstance(client, OtherClient):
        raise NotThere("not driven at a terminal")
    play_a_compaction(client, played.write("new.md", "new\n"), played.change("notes.md", "line one", "line two"))
    return HELD


@scenario("interrupt")
def _interrupt(played: Played) -> str:
    """A session that is interrupted leaves no lock behind."""

    def interrupted(live: Live) -> None:
        def has_ended() -> bool:
            if live.process.poll() is None:
                live.interrupt()  # again, as a person does: a client that is starting may not heed the first
                return False
            return True

        if not wait_for(has_ended, SECONDS, pause=2):
            raise NotThere("it goes on after SIGINT")

    return _leaves_no_lock(played, interrupted)


@scenario("kill")
def _kill(played: Played) -> str:
    """A session that is killed leaves no lock behind."""
    return _leaves_no_lock(played, Live.kill)


def _is_announced(client: Client) -> bool:
    return not isinstance(client, OtherClient) or client.announced


def _leaves_no_lock(played: Played, end: Callable[[Live], None]) -> str:
    coordinator, calls = played.client.ground.coordinator, played.write("new.md", "new\n")
    at = 0
    if not _is_announced(played.client):
        at = len(calls)  # the first check registers it
    with played.client.held("work", *calls, at=at) as live:
        (own,) = wait_for(coordinator.sessions, SECONDS)
        coordinator.lock(own["id"], "notes.md", "mine")
        end(live)
        assert wait_for(lambda: not coordinator.locks(), SECONDS), coordinator.locks()
    return HELD


@scenario("code mode")
def _code_mode(played: Played) -> str:
    """Writes inside a script that the model wrote are denied, and the script goes on.

    A breach by a command is told even if the script shows only the exit status.
    """
    client = played.client
    if not played.family.code_mode:
        raise NotThere("its models call tools one by one")
    if isinstance(client, ClaudeCode):
        said = client.run("work", client.shell("true"), extra=client.scripting).out
        refused = re.search(r"Code Mode \(experimental\) isn't available: ([^\n]+?)\. ", said)
        if refused:
            raise NotThere(refused[1])
        raise NotImplementedError("its scripts are not driven")
    assert isinstance(client, (Codex, Pi))
    calls = [*played.change("other.md", "other", "another"), *played.change("notes.md", "line one", "x")]
    calls.append(client.shell("echo x > notes.md"))
    command, extra = 'tools.exec_command({"cmd": "python3 build.py"})', ()
    if isinstance(client, Pi):
        command, extra = client.in_script(client.shell("python3 build.py")), client.scripting
        calls = [client.script("".join(f"text(await {client.in_script(call)}.catch(String));" for call in calls))]
    client.ground.coordinator.peer_lock("notes.md")
    client.run("work", *calls, extra=extra)
    if isinstance(client, Pi) and not client.offers("work", "codemode"):
        raise NotThere("no tool for scripts")
    assert_denied(client, "work", "notes.md")
    assert "".join(client.results("work")).count("swarm lock blocked") == 2, client.results("work")
    assert_text(client, "other.md", "another\n")
    (client.ground.checkout / "build.py").write_text(OPAQUE)
    status = client.script(f"text('status ' + (await {command}).exit_code)")
    client.run("unread", status, client.shell("true"), extra=extra)
    assert "status 0" in client.results("unread")[0], client.results("unread")
    assert "while your last command ran" in client.said("unread"), client.results("unread")
    return HELD

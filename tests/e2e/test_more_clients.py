"""The same lock in every other client: one list of scenarios, run in each client of this machine.

Gaps that a client's runtime declares are left out of its scenarios by that declaration.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from swarm_mcp.play.clients import SERVER
from swarm_mcp.play.models import play
from swarm_mcp.runtimes import runtime
from swarm_mcp.runtimes.installed import YES, Coverage

from .checks import OPAQUE, assert_denied, assert_text, assert_untouched
from .client import Call, Client
from .clients import ClaudeCode
from .ground import Ground, Lacking, sweep, wait_for
from .marketplace import Marketplace
from .more import NAMES, OtherClient, ground_for, other_client, prepared
from .played_peer import PlayedPeer
from .test_fail_open import Broken, no_command_line, store_held_by_another, store_is_garbage

CHANGE = ("notes.md", "line one", "line two")
# The clients of one worker stay in it: each is installed once.
CASES = [pytest.param(name, marks=pytest.mark.xdist_group(f"more-{name}"), id=name) for name in NAMES]
RELAY = re.compile(r"/[^\s'\"]*/swarm_relay")  # a hook's command asks a checker by it
CLOSING = ("copilot", "gemini")  # these take a hook's exit status for a refusal
TIED = ("grok", "gemini", "opencode")  # with Claude Code, four that are held in different ways
Fault = Callable[[Ground], AbstractContextManager[Broken]]


class Stock:
    """The grounds of one test worker, one for each client, made when first asked for."""

    def __init__(self) -> None:
        sweep()
        self._clients: dict[str, OtherClient | BaseException] = {}

    def client(self, name: str) -> OtherClient:
        """The client called `name`, with the plugin; an installation that failed is not tried again."""
        if name not in self._clients:
            try:
                self._clients[name] = _installed(name)
            except Exception as raised:
                self._clients[name] = raised
        found = self._clients[name]
        if isinstance(found, Lacking):
            pytest.skip(str(found))
        if isinstance(found, BaseException):
            raise AssertionError(f"the plugin could not be installed into {name}: {found}") from found
        found.ground.renew()
        return found

    def close(self) -> None:
        for client in self._clients.values():
            if isinstance(client, OtherClient):
                client.ground.close()


def _installed(name: str) -> OtherClient:
    ground = ground_for(name)
    client = other_client(name, ground)
    client.prepare()
    Marketplace(ground, "install").install(name)
    return client


@pytest.fixture(scope="module")
def more_stock() -> Iterator[Stock]:
    stock = Stock()
    yield stock
    stock.close()


@pytest.fixture(params=CASES)
def other(request: pytest.FixtureRequest, more_stock: Stock) -> Iterator[OtherClient]:
    client = more_stock.client(request.param)
    yield client
    client.ground.end_processes()


@pytest.fixture
def covered(other: OtherClient) -> Coverage:
    return runtime(other.name).coverage


def test_its_sessions_are_registered_and_go(other: OtherClient, covered: Coverage) -> None:
    coordinator = other.ground.coordinator
    if not other.announced:
        pytest.skip(f"{other.name} does not tell of a session's start")
    with other.held("work", other.create("free.md", "free\n")) as live:
        (own,) = wait_for(coordinator.sessions, 60)
        assert own["label"].split()[0].startswith(other.name) or f"origin:{other.name}" in own["label"], own
        coordinator.lock(own["id"], "notes.md", "mine")
        live.go_on()
    assert_text(other, "free.md", "free\n")
    if covered.ends == YES:
        assert wait_for(lambda: not coordinator.sessions(), 60), coordinator.sessions()
    # Otherwise its process shows it: its locks are gone.
    assert wait_for(lambda: not coordinator.locks(), 60), coordinator.locks()
    assert covered.told_before != YES or "is registered as" in other.context("work"), "told before"


def test_edits_of_locked_files_are_denied_and_others_made(other: OtherClient) -> None:
    other.ground.coordinator.peer_lock("notes.md")
    free, own = other.create("free.md", "free\n"), other.change("other.md", "other", "another")
    other.run("work", free, *own, *other.change(*CHANGE))
    assert_denied(other, "work", "notes.md")
    assert_text(other, "free.md", "free\n")
    assert_text(other, "other.md", "another\n")


def test_a_new_file_that_a_peer_has_locked_is_not_made(other: OtherClient) -> None:
    other.ground.coordinator.peer_lock("new.md")
    other.run("work", other.create("new.md", "new\n"))
    assert not (other.ground.checkout / "new.md").exists()
    assert "swarm lock blocked" in other.last_result("work")


def test_patches(other: OtherClient, covered: Coverage) -> None:
    if covered.patches != YES:
        pytest.skip(f"{other.name}: {covered.patches}")
    other.ground.coordinator.peer_lock("notes.md")
    update = "*** Update File: notes.md\n@@\n-line one\n+line two"
    move = "*** Update File: other.md\n*** Move to: notes.md\n@@\n-other\n+moved"
    free = "*** Add File: free.md\n+free"
    calls = [*other.patch(update), *other.patch(move), *other.patch(f"{free}\n{update}"), *other.patch(free)]
    other.run("work", *calls)
    told = [text for text in other.results("work") if "swarm lock blocked" in text]
    assert len(told) == 3 and all("notes.md" in text for text in told), other.results("work")
    assert_untouched(other, "notes.md")
    assert_untouched(other, "other.md")
    made = (other.ground.checkout / "free.md").read_text()
    assert made.removesuffix("\n") == "free"  # Cline does not end the last line of a file that a patch adds


def test_shell_commands(other: OtherClient) -> None:
    other.ground.coordinator.peer_lock("notes.md")
    writes = ("echo 'line two' | tee notes.md", "sed -i 's/one/two/' notes.md", "cd sub && echo x > ../notes.md")
    calls = [other.shell("cat notes.md"), *map(other.shell, writes), other.shell("echo free > free.md")]
    other.run("work", *calls)
    told = other.results("work")
    assert len(told) == len(calls) and "line one" in told[0], told
    assert all("swarm lock blocked" in text for text in told[1:4]), told
    assert_untouched(other, "notes.md")
    assert_text(other, "free.md", "free\n")


def test_what_nobody_could_see_is_told(other: OtherClient, covered: Coverage) -> None:
    (other.ground.checkout / "build.py").write_text(OPAQUE)
    other.ground.coordinator.peer_lock("notes.md")
    other.run("work", other.shell("python3 build.py"), other.shell("cat notes.md"))
    said = other.said("work")
    assert_text(other, "notes.md", "spoilt\n")
    assert covered.told_before.startswith("no") or "other sessions hold" in said, said[-3000:]
    assert covered.told_after.startswith("no") or "swarm-mcp restore" in said, said[-3000:]


def test_sub_agents_are_denied_and_write_under_the_lock_of_their_session(other: OtherClient, covered: Coverage) -> None:
    if covered.subagents != YES or not other.announced:
        pytest.skip(f"{other.name}: {covered.subagents}, announced: {other.announced}")
    coordinator = other.ground.coordinator
    coordinator.peer_lock("notes.md")
    other.models.script("errand", other.replace(*CHANGE), *other.change("other.md", "other", "another"))
    with other.held("work", *other.sub_agent("errand")) as live:
        (own,) = wait_for(coordinator.sessions, 60)
        coordinator.lock(own["id"], "other.md", "mine")
        live.go_on()
    assert "swarm lock blocked" in other.results("errand")[0]
    assert_untouched(other, "notes.md")
    assert_text(other, "other.md", "another\n")


def test_another_server_s_tool(other: OtherClient, covered: Coverage) -> None:
    if covered.other_tools != YES:
        pytest.skip(f"{other.name}: {covered.other_tools}")
    other.ground.coordinator.peer_lock("notes.md")
    other.add_server("files", SERVER["command"], SERVER["args"])
    file = str(other.ground.checkout / "notes.md")
    read = other.server_tool("files", "read_file", {"path": file})
    other.run("work", *read, *other.server_tool("files", "write_file", {"path": file, "content": "line two\n"}))
    assert any("line one" in text for text in other.results("work")), other.results("work")
    assert_denied(other, "work", "notes.md")


def test_a_file_is_locked_by_itself_from_its_first_write_to_the_turn_s_end(
    other: OtherClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(other.ground.env, "SWARM_AUTO", "turn")
    peer, writes = PlayedPeer(other.ground), other.change(*CHANGE)
    with other.held("work", *writes, at=len(writes)) as live:
        assert "notes.md" in peer.denied("notes.md")
        assert peer.denied("other.md") == ""
        live.go_on()
    assert_text(other, "notes.md", "line two\n")
    assert wait_for(lambda: not peer.denied("notes.md"), 60), peer.denied("notes.md")


def test_what_a_peer_has_not_committed_is_kept(other: OtherClient) -> None:
    """The file is not locked; each session's journal tells of its writes."""
    peer = PlayedPeer(other.ground)
    assert peer.denied("notes.md") == ""
    (other.ground.checkout / "notes.md").write_text("the peer's\n")
    other.run("work", other.shell("echo mine > notes.md"), other.shell("echo mine > other.md"))
    assert_text(other, "notes.md", "the peer's\n")
    assert_text(other, "other.md", "mine\n")
    told = other.results("work")[0]
    assert "notes.md" in told and "claude-code" in told, told


def test_its_model_has_the_skills(other: OtherClient) -> None:
    other.run("work", other.create("free.md", "free\n"))
    said = other.said("work")
    assert all(words in said for words in other.skills), said[:3000]


def test_the_status_command(other: OtherClient) -> None:
    """A person's command unfolds into the skill's text, and the scripted model acts on it."""
    other.ground.coordinator.peer_lock("notes.md")
    other.models.script("status", other.shell("swarm-mcp status"))
    try:
        command = other.typed(f"status {play('status')}")
    except Lacking as lacking:
        pytest.skip(str(lacking))
    assert other.ground.run(command).returncode == 0
    assert "Read only: take no lock" in other.context("status"), other.context("status")[-2000:]
    assert "notes.md" in other.last_result("status"), other.results("status")


def test_a_lock_of_claude_code_holds_here_and_one_taken_here_holds_there(other: OtherClient, more_stock: Stock) -> None:
    coordinator = other.ground.coordinator
    claude = ClaudeCode(other.ground)
    if not (other.ground.home / ".claude.json").exists():
        claude.prepare()
        Marketplace(other.ground, "install").install(claude.name)
    lock = claude.swarm_tools(("lock_file", {"file": "notes.md", "reason": "from the other kind"}))
    with claude.held("holding", *lock, at=len(lock)) as live:
        assert len(coordinator.locks()) == 1, claude.results("holding")
        other.run("writing", *other.change(*CHANGE))
        assert_denied(other, "writing", "notes.md", holder="claude-code", note="from the other kind")
        live.go_on()
    if not other.announced:
        return
    lock = other.swarm_tools(("lock_file", {"file": "other.md", "reason": "from here"}))
    with other.held("taking", *lock, at=len(lock)) as live:
        assert len(coordinator.locks()) == 1, other.results("taking")
        claude.run("denied", claude.replace("other.md", "other", "another"))
        assert_denied(claude, "denied", "other.md", holder=other.name, note="from here")
        live.go_on()


@pytest.mark.parametrize("fault", [no_command_line, store_is_garbage, store_held_by_another], ids=lambda f: f.__name__)
def test_the_write_lands_whatever_is_broken(other: OtherClient, fault: Fault) -> None:
    with fault(other.ground) as env:
        other.run("work", *other.change(*CHANGE), env=env)
    assert_text(other, "notes.md", "line two\n")


def test_the_write_lands_where_the_plugin_s_folder_has_gone(other: OtherClient) -> None:
    folder = Path(other.ground.coordinator.json("install", "--client", other.name, "--dry-run")["marketplace"])
    away = folder.with_name("away")
    shutil.move(folder, away)
    try:
        other.run("work", *other.change(*CHANGE))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(away, folder)
    assert_text(other, "notes.md", "line two\n")


def test_the_write_lands_where_the_check_hangs(other: OtherClient) -> None:
    """The client, or the plugin inside it, gives the check up long before it ends: a run is given a minute."""
    hangs = other.ground.tmp / "hangs"
    hangs.write_text("#!/bin/sh\necho >>$0.begun\nexec sleep 300\n")
    hangs.chmod(0o755)
    other.ground.coordinator.peer_lock("notes.md")
    with wired(other, "pre_tool_use", str(hangs)):
        other.run("work", *other.change(*CHANGE))
    assert (other.ground.tmp / "hangs.begun").exists()
    assert_text(other, "notes.md", "line two\n")


@pytest.mark.parametrize("other", [case for case in CASES if case.id in CLOSING], indirect=True)
def test_the_write_lands_where_the_interpreter_has_gone(other: OtherClient) -> None:
    other.ground.coordinator.peer_lock("notes.md")
    with wired(other, "", "/nonexistent/python"):
        other.run("work", *other.change(*CHANGE), other.shell("echo free > free.md"))
    assert_text(other, "notes.md", "line two\n")
    assert_text(other, "free.md", "free\n")


@contextmanager
def wired(other: OtherClient, event: str, python: str) -> Iterator[None]:
    """Meanwhile the installed hooks of an event (empty for all) name another interpreter, and it as their relay."""
    folder = Path(other.ground.coordinator.json("install", "--client", other.name, "--dry-run")["marketplace"])
    known = json.loads((folder / "install.json").read_text())["python"]
    files = [*(folder / "integrations" / other.name).rglob("hooks.json"), *folder.glob(f"{other.name}.plugin.json")]
    files += other.wired_in()
    before = {path: path.read_text() for path in files}
    try:
        for path, text in before.items():
            lines = [
                RELAY.sub(python, line.replace(known, python)) if event in line else line for line in text.splitlines()
            ]
            path.write_text("\n".join(lines))
        yield
    finally:
        for path, text in before.items():
            path.write_text(text)


def test_a_tie_of_four_clients_has_one_winner() -> None:
    """All lock one file and write it at the same moment, in one checkout and one home.

    Each changes a line of its own: where one's line is gone Claude Code refuses the edit itself, before any hook.
    """
    try:
        ground = ground_for(*TIED)
    except Lacking as lacking:
        pytest.skip(str(lacking))
    try:
        clients: list[Client] = [ClaudeCode(ground), *(other_client(name, ground) for name in TIED)]
        marketplace = Marketplace(ground, "install")
        before = "".join(f"free for {client.name}\n" for client in clients)
        (ground.checkout / "notes.md").write_text(before)
        for client in clients:
            client.prepare()
            marketplace.install(client.name)
        with ExitStack() as sessions:
            starts = [sessions.enter_context(client.held(client.name, *_lock_and_write(client))) for client in clients]
            ends = [client.hold(client.name, len(_lock_and_write(client))) for client in clients]
            for start in starts:
                start.gate.open()
            assert all(end.wait_reached(60) for end in ends)
            (lock,) = ground.coordinator.locks()
            written = (ground.checkout / "notes.md").read_text()
            denied = [client.name for client in clients if "swarm lock blocked" in client.last_result(client.name)]
            for start, end in zip(starts, ends):
                end.open()
                start.go_on()
    finally:
        ground.close()
    (winner,) = {client.name for client in clients} - set(denied)
    assert written == before.replace(f"free for {winner}", f"by {winner}"), (denied, lock)
    assert f"origin:{winner}" in lock["owner_label"]


def _lock_and_write(client: Client) -> list[Call]:
    lock = client.swarm_tools(("lock_file", {"file": "notes.md", "reason": f"for {client.name}"}))
    write = ("notes.md", f"free for {client.name}", f"by {client.name}")
    return [*lock, *(client.change(*write) if isinstance(client, OtherClient) else [client.replace(*write)])]


@pytest.mark.parametrize("name", CASES)
def test_uninstalling_gives_back_what_was_there(name: str) -> None:
    with prepared(name) as client:
        coordinator, before = client.ground.coordinator, _settings(client)
        for _again in range(2):
            coordinator.text("install", "--client", name)
        checks = {check["name"]: check for check in coordinator.json("doctor", allowed=(0, 1))["checks"]}
        coordinator.text("uninstall", "--client", name)
        assert checks[f"{name} enforcement"]["status"] == "ok", checks[f"{name} enforcement"]
        assert checks[f"{name} coverage"]["status"] == "info"
        assert _settings(client) == before


def _settings(client: OtherClient) -> dict[str, bytes | None]:
    files = {name: client.ground.home / name for name in client.settings}
    return {name: file.read_bytes() if file.exists() else None for name, file in files.items()}

"""Changes of locked files by calls that cannot be parsed: found afterwards, reported, and the earlier content kept."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support.altered import Limits
from support.files import folder_at, text_at
from support.fixtures import wait_for
from support.requirement import requirement
from support.sessions import (
    ROOT,
    after,
    alterations,
    begun,
    captured,
    fault_lines,
    mistakes,
    new_session,
    peer_locks,
    run,
    start,
    write_payload,
)

from swarm_hook_core import process as processes
from swarm_hook_core.hooks import SessionEvent, ToolCall, tool_call
from swarm_hook_core.lookup import Held
from swarm_hook_core.state import SHELL_BETWEEN, is_watching, write_private
from swarm_hook_core.traces import PATH, pruning
from swarm_hook_core.traces.versions import stored as kept
from swarm_hook_core.watching import edits, records, watch
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow


class Config:
    """All that watching wants to know of a runtime."""

    runtime_name, env_prefix = "codex", "CODEX"


@pytest.fixture
def repo(repo: Path) -> Path:
    (repo / "f").write_text("theirs\n")
    return repo


@pytest.fixture
def state() -> Path:
    return Path(os.environ["SWARM_STATE_DIR"])


def mail_of(row: dict[str, Any]) -> list[str]:
    with Store() as store:
        return [message["content"] for message in store.messages.peek(row)]


def events() -> list[dict[str, Any]]:
    with Store() as store:
        return store.database.rows("SELECT * FROM events WHERE type = 'context.lock_breached'")


def test_an_opaque_command_that_writes_a_locked_file_is_noticed(runtime: str, repo: Path, state: Path) -> None:
    me = new_session()
    assert start(runtime, me, repo).context
    holder = peer_locks(repo, repo / "f", "renumbering")
    payload = begun(runtime, me, repo, tool="Bash")
    (repo / "f").write_text("mine\n")
    said = after(runtime, payload)
    for words in (str(repo / "f"), "renumbering", holder["id"], "Stop", "make gen", f"swarm-mcp restore {repo / 'f'}"):
        assert words in said, said
    (row,) = wait_for(alterations)
    assert Path(row["kept"]).read_text() == "theirs\n"
    assert row["path_key"] == str(repo / "f")
    assert (row["file"], row["kind"], row["holder_id"]) == (str(repo / "f"), "changed", holder["id"])
    (text,) = mail_of(holder)
    assert "ran `make gen` (Bash)" in text and row["kept"] in text and f"restore {repo / 'f'} --id {row['id']}" in text
    (event,) = events()
    told = json.loads(event["payload"])
    assert (event["actor"], event["subject"]) == (row["writer_id"], str(repo / "f"))
    assert told == {
        "holder": holder["id"], "lock": told["lock"], "note": "renumbering", "key": str(repo / "f"),
        "writer_label": row["writer_label"], "tool": "Bash", "command": "make gen", "kind": "changed",
        "kept": row["kept"], "altered_at": row["altered_at"], "alteration": row["id"],
    }  # fmt: skip
    assert not (state / "watched").exists() and mistakes() == []


def test_a_link_that_takes_the_file_s_place_does_not_hide_what_is_kept(repo: Path, state: Path) -> None:
    me = new_session()
    assert start("codex", me, repo).context
    peer_locks(repo, repo / "f")
    (repo / "g").write_text("another\n")
    payload = begun("codex", me, repo)
    (repo / "f").unlink()
    (repo / "f").symlink_to("g")
    assert f"swarm-mcp restore {repo / 'f'}" in after("codex", payload)
    (row,) = wait_for(alterations)
    assert (row["file"], row["path_key"]) == (str(repo / "f"), str(repo / "f"))
    assert Path(row["kept"]).read_text() == "theirs\n"


def test_a_failed_call_is_compared_as_well(repo: Path) -> None:
    me = new_session()
    start("claude-code", me, repo)
    peer_locks(repo, repo / "f")
    payload = begun("claude-code", me, repo)
    (repo / "f").unlink()
    said = after("claude-code", payload, "PostToolUseFailure", error="Exit code 2")
    assert "f was removed" in said
    assert wait_for(alterations)[0]["kind"] == "removed"


def test_a_client_that_is_killed_is_asked_at_its_next_hook(runtime: str, repo: Path, state: Path) -> None:
    me = new_session()
    start(runtime, me, repo)
    holder = peer_locks(repo, repo / "f")
    payload = begun(runtime, me, repo)
    # The command goes on, its client is gone: nothing ever tells its end.
    writer = subprocess.Popen(["/bin/sh", "-c", f"echo mine > {repo}/f; sleep 60"])
    wait_for(lambda: (repo / "f").read_text() == "mine\n")
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    back = start(runtime, me, repo, "resume")
    assert "is registered as" in back.context and f"{repo / 'f'} changed" in back.context
    assert wait_for(alterations)[0]["holder_id"] == holder["id"]
    assert not (state / "watched").exists()
    assert after(runtime, payload) == ""


def test_the_end_of_a_session_settles_what_is_left(runtime: str, repo: Path, state: Path) -> None:
    me = new_session()
    start(runtime, me, repo)
    holder = peer_locks(repo, repo / "f")
    begun(runtime, me, repo)
    (repo / "f").write_text("mine\n")
    run(runtime, "session_end", {**captured(runtime, "SessionEnd", repo), "session_id": me})
    wait_for(alterations)
    assert len(mail_of(holder)) == 1 and not (state / "watched").exists()


def test_a_background_command_is_watched_beyond_its_start(repo: Path, state: Path) -> None:
    me = new_session()
    start("claude-code", me, repo)
    peer_locks(repo, repo / "f")
    payload = begun("claude-code", me, repo)
    assert after("claude-code", payload, tool_response={"backgroundTaskId": "b1", "stdout": ""}) == ""
    turn = {**captured("claude-code", "Stop", repo), "session_id": me}
    assert run("claude-code", "turn", turn).out == "" and (state / "watched" / me).is_dir()
    (repo / "f").write_text("mine\n")
    ran = run("claude-code", "turn", {**captured("claude-code", "UserPromptSubmit", repo), "session_id": me})
    inner = json.loads(ran.out)["hookSpecificOutput"]
    assert inner["hookEventName"] == "UserPromptSubmit" and "since your command began" in inner["additionalContext"]
    wait_for(alterations)


def test_a_holder_of_another_identity_stays_unnamed(repo: Path) -> None:
    me = new_session()
    start("codex", me, repo, SWARM_CODEX_IDENTITY="p")
    holder = peer_locks(repo, repo / "f", "secret-note", "identity:q secret-name")
    payload = begun("codex", me, repo, "make secret-command")
    (repo / "f").write_text("mine\n")
    said = after("codex", payload)
    assert "another identity" in said and "secret-n" not in said and holder["id"] not in said
    wait_for(alterations)
    (text,) = mail_of(holder)
    assert "another identity" in text and "secret-command" not in text and str(repo / "f") in text


def edited(runtime: str, me: str, repo: Path, name: str) -> str:
    """Return the notice to a session about an edit, which passes, of the file `name`."""
    payload = write_payload(runtime, me, repo, str(repo / name))
    ran = run(runtime, "pre_tool_use", payload)
    assert '"deny"' not in ran.out and mistakes() == []
    return str(json.loads(ran.out)["hookSpecificOutput"]["additionalContext"]) if ran.out else ""


def test_a_formatter_that_another_plugin_runs_after_an_edit_is_noticed(runtime: str, repo: Path, state: Path) -> None:
    me = new_session()
    start(runtime, me, repo)
    holder = peer_locks(repo, repo / "f", "renumbering")
    assert edited(runtime, me, repo, "mine.txt") == "" and not (state / "watched").exists(), "no process after the edit"
    (repo / "f").write_text("formatted\n")
    said = edited(runtime, me, repo, "other.txt")
    for words in ("after your last edit", "mine.txt", str(repo / "f"), "renumbering", "formatter", holder["id"]):
        assert words in said, said
    (row,) = wait_for(alterations)
    assert Path(row["kept"]).read_text() == "theirs\n" and row["holder_id"] == holder["id"]
    assert edited(runtime, me, repo, "mine.txt") == "", "told once"
    turn = {**captured(runtime, "Stop", repo), "session_id": me}
    run(runtime, "turn", turn)
    assert not (state / "watched-edits").exists() and not (state / "acting").exists() and mistakes() == []


def test_after_an_edit_a_shell_call_and_the_end_of_the_turn_compare_too(runtime: str, repo: Path, state: Path) -> None:
    me = new_session()
    start(runtime, me, repo)
    peer_locks(repo, repo / "f")
    edited(runtime, me, repo, "mine.txt")
    (repo / "f").unlink()
    payload = {**captured(runtime, "PreToolUse.Bash", repo), "session_id": me, "tool_input": {"command": "ls"}}
    assert "was removed" in run(runtime, "pre_tool_use", payload).out
    (removal,) = wait_for(alterations)  # reports are processes of their own: the second may be the first to end
    edited(runtime, me, repo, "mine.txt")
    (repo / "f").write_text("anew\n")
    run(runtime, "turn", {**captured(runtime, "Stop", repo), "session_id": me})
    _, creation = wait_for(lambda: len(alterations()) == 2 and alterations())
    assert (removal["kind"], creation["kind"]) == ("removed", "created")
    assert not (state / "watched-edits").exists()


def test_edits_beside_what_nobody_but_the_holder_changes_cost_no_word(runtime: str, repo: Path, state: Path) -> None:
    me, peer = new_session(), new_session()
    start(runtime, me, repo)
    edited(runtime, me, repo, "mine.txt")
    assert not (state / "watched-edits").exists(), "nobody has locked anything"
    start(runtime, peer, repo)
    peer_locks(repo, repo / "f", runtime=runtime, session_id=peer)
    edited(runtime, me, repo, "mine.txt")
    assert edited(runtime, peer, repo, "f") == ""
    (repo / "f").write_text("the holder's\n")
    assert edited(runtime, me, repo, "mine.txt") == "" and mistakes() == []
    record = next((state / "watched-edits").iterdir())
    facts = json.loads(record.read_text())
    facts["began"] -= 3600 * 10**9  # long ago
    write_private(str(record), json.dumps(facts))
    (repo / "f").write_text("by an editor\n")
    assert edited(runtime, me, repo, "mine.txt") == ""


def settled_look(held: list[Held], most: int) -> watch.Look:
    """Look until the files are old enough to be known by their times."""

    def is_settled() -> bool:
        return watch.look_at(held, most, kept.Kept()) is watch.look_at(held, most, kept.Kept())

    wait_for(is_settled)
    return watch.look_at(held, most, kept.Kept())


def test_a_checker_keeps_the_record_of_an_edit_until_something_changes(repo: Path, state: Path, monkeypatch) -> None:
    monkeypatch.setattr(processes, "is_answering", lambda: True)
    config: Any = Config()
    file, me = str(repo / "f"), new_session()
    held = [Held(file, "holder", "peer", "note", names=(file, file))]
    reads: list[str] = []
    loads = records.loads
    monkeypatch.setattr(records, "loads", lambda text: (reads.append(text), loads(text))[1])

    def edit() -> None:
        call = ToolCall("Edit", {}, me, str(repo))
        look = watch.look_at(held, edits.MOST_FILES, kept.Kept())
        edits._note(config, call, [str(repo / "mine.txt")], look)

    def has_all() -> bool:
        return json.loads(record.read_text()) == records.facts_in(str(record))

    settled_look(held, edits.MOST_FILES)
    edit()
    event = SessionEvent(name="PreToolUse", session_id=me)
    record = next((state / "watched-edits").iterdir())
    inode = record.stat().st_ino
    for _ in range(2):
        assert edits.settle(config, event) == []
    assert (record.stat().st_ino, reads) == (inode, []), "put back as it is"
    breaches, untouched = edits._settled(config, me, "edit")
    assert breaches == [] and untouched is watch.look_at(held, edits.MOST_FILES, kept.Kept()).locks
    edit()
    assert has_all() and reads == [], "the locks are written as before"
    (repo / "f").write_text("formatted\n")
    (breach,) = edits.settle(config, event)
    assert (breach.file, breach.kind, Path(breach.kept).read_text()) == (file, "changed", "theirs\n")
    assert edits.settle(config, event) == [] and has_all()
    text = record.read_text()
    write_private(str(record), text)  # another hook's
    reads.clear()
    assert edits.settle(config, event) == [] and reads[0] == text
    assert [path.name for path in (state / "watched-edits").iterdir()] == [record.name]


def test_a_checker_looks_at_locked_files_anew_once_something_has_changed(repo: Path) -> None:
    store, other = kept.Kept(), repo / "g"
    other.write_text("as well\n")
    locks = [Held(str(file), "holder", names=(str(file), str(file))) for file in (repo / "f", other)]
    look = settled_look(locks, 50)
    assert json.loads(look.text) == look.locks
    assert watch.look_at(locks[:1], 50, store).locks == look.locks[:1], "other locks"
    look = settled_look(locks, 50)
    other.write_text("changed\n")
    changed = settled_look(locks, 50)
    assert changed.locks[0] == look.locks[0] and changed.locks[1] != look.locks[1], "another content"
    ((_path, _key, _snapshot, copy, _why),) = changed.locks[1]["entries"]
    assert Path(copy).read_text() == "changed\n"
    os.remove(copy)
    ((*_, again, _why),) = watch.look_at(locks, 50, store).locks[1]["entries"]
    assert again != copy and Path(again).read_text() == "changed\n", "the copy made room for others"
    other.unlink()
    missing = watch.look_at(locks, 50, store)
    assert missing.locks[1]["entries"][0][4] == "there was no such file"
    assert watch.look_at(locks, 50, store) is missing
    folder = [Held(str(repo), "holder", names=(str(repo), str(repo)))]
    before = watch.look_at(folder, 50, store)
    (repo / "new").write_text("new\n")
    assert len(watch.look_at(folder, 50, store).locks[0]["entries"]) == len(before.locks[0]["entries"]) + 1


def test_a_lock_given_up_before_the_change_is_none(repo: Path, store: Store) -> None:
    me = new_session()
    start("codex", me, repo)
    holder = peer_locks(repo, repo / "f")
    payload = begun("codex", me, repo)
    store.locks.release(holder, str(repo / "f"))
    time.sleep(1.1)  # events have whole seconds
    (repo / "f").write_text("mine\n")
    assert after("codex", payload) == ""
    time.sleep(1)  # long enough for a detached command that must not have been started
    assert alterations() == []


@pytest.mark.parametrize("setting", ["SWARM_STATE_DIR", "XDG_STATE_HOME", "HOME"])
@requirement("P-10")
def test_python_is_started_only_while_something_is_watched(setting: str, tmp_path: Path) -> None:
    below = {"SWARM_STATE_DIR": "", "XDG_STATE_HOME": "swarm-mcp", "HOME": ".local/state/swarm-mcp"}[setting]
    if setting == "HOME" and sys.platform == "darwin":
        below = "Library/Application Support/swarm-mcp"
        (tmp_path / "Library").mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": "/nowhere", setting: str(tmp_path)}
    for name in ("hook.sh", "state.sh"):
        shutil.copy(ROOT / "integrations" / name, tmp_path)
    (tmp_path / "hook.py").write_text("import sys; print(len(sys.stdin.read()))")
    script = ["/bin/sh", str(tmp_path / "hook.sh"), "any-client", "post_tool_use", sys.executable]

    def ran() -> str:
        with subprocess.Popen(script, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin and process.stdout
            # More than a pipe holds: Codex calls a hook failed that leaves some of it unread.
            process.stdin.write(b"x" * 300_000)
            process.stdin.close()
            return process.stdout.read().decode().strip()

    assert ran() == ""
    folder_at(tmp_path / below / "watched")
    assert ran() == "300000"
    env[setting] = "~/somewhere"
    if setting == "SWARM_STATE_DIR":
        assert ran() == "300000", "what only Python understands is left to Python"


@pytest.mark.parametrize("client", ["claude-code", "kimi", *SHELL_BETWEEN, "opencode", "hermes"])
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_end_of_a_call_is_marked_for_the_client_s_process(shell: str, client: str, tmp_path: Path) -> None:
    """Some clients start hooks from a shell more; plugins in their client's process mark ends themselves."""
    (tmp_path / "ended").mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "SWARM_STATE_DIR": str(tmp_path)}
    command = f"/bin/sh '{ROOT / 'integrations' / 'hook.sh'}' {client} post_tool_use"
    words = f"{command}; exit 0" if client in SHELL_BETWEEN else f"exec {command}"
    done = subprocess.run([shell, "-c", words], env=env, input=b"{}", capture_output=True, check=True)
    assert done.stdout == done.stderr == b""
    marks = [int(path.name) for path in (tmp_path / "ended").iterdir()]
    assert marks == ([] if client in ("opencode", "hermes") else [os.getpid()])
    for mark in (tmp_path / "ended").iterdir():  # of a call whose end is not noted yet
        os.utime(mark, (1000, 1000))
        subprocess.run([shell, "-c", words], env=env, input=b"{}", check=True)
        assert (mark.stat().st_mtime == 1000) is (client != "claude-code"), "the calls since then only looked"
        mark.unlink()
        for spoil in (os.mkdir, os.mkfifo):  # no mark can be made
            spoil(mark)
            done = subprocess.run([shell, "-c", words], env=env, input=b"{}", capture_output=True, timeout=60)
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
            shutil.rmtree(mark) if mark.is_dir() else mark.unlink()


class Calls:
    """Calls of one session that go ahead while a peer holds `files`, without any process."""

    def __init__(self, *files: Path, session: str = "s-1"):
        self.held = [Held(str(file), "holder", "peer", "note", names=(str(file), str(file))) for file in files]
        self.session = session

    def call(self, call: str, event: str = "PostToolUse", **more: Any) -> ToolCall:
        given = {"session_id": self.session, "tool_name": "Bash", "tool_input": {"command": "make"}}
        return tool_call({**given, "tool_use_id": call, "hook_event_name": event, **more})

    def begin(self, call: str = "", **more: Any) -> None:
        watch.begin(Config, self.call(call, **more), self.held, time.time(), kept.Kept)

    def finish(self, call: str = "", **more: Any) -> list[tuple[str, str]]:
        return seen(watch.finish(Config, self.call(call, **more)))

    def settle(self, event: str, now: float = 0.0) -> list[tuple[str, str]]:
        return seen(watch.settle(Config, SessionEvent(self.session, name=event), now or time.time()))


def seen(changes: list[Any]) -> list[tuple[str, str]]:
    return [(os.path.basename(change.file), change.kind) for change in changes]


def mark_own(call: ToolCall, instance_id: str, *files: Path) -> None:
    """Mark a call of the holder, as the hook before it does."""
    records.mark_own(instance_id, [str(file) for file in files], records.call_key("codex", call), time.time_ns())


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = [tmp_path.resolve() / name for name in ("a", "b", "c")]
    for file in made:
        file.write_text(f"{file.name} of the holder\n")
    return made


def test_the_first_file_is_kept_however_late_it_is(files: list[Path], state: Path, limits: Limits) -> None:
    """On a busy machine the time for copies was over before the first: a file that was only touched counted as changed."""
    limits(watch, KEEPING_SECONDS=0.0)
    calls = Calls(files[0])
    calls.begin()
    os.utime(files[0])
    assert calls.finish() == []


def test_calls_alike_are_told_apart_by_their_id_or_by_their_order(files: list[Path], state: Path) -> None:
    calls = Calls(*files)
    calls.begin("1")
    files[0].write_text("x")
    calls.begin("2")
    files[1].write_text("x")
    assert calls.finish("2") == [("b", "changed")]
    assert calls.finish("1") == [("a", "changed"), ("b", "changed")]
    assert calls.finish("1") == [] and not (state / "watched").exists()
    calls.begin("")  # the server's way of asking carries no id
    files[2].write_text("x")
    calls.begin("")
    assert sorted(calls.finish("3") + calls.finish("4")) == [("c", "changed")]


def test_many_at_once_lose_nothing(files: list[Path], state: Path) -> None:
    calls = Calls(*files)
    for _ in range(8):
        calls.begin("")
    files[0].write_text("x")
    found: list[list[tuple[str, str]]] = []
    threads = [threading.Thread(target=lambda: found.append(calls.finish(""))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[("a", "changed")]] * 8
    assert not (state / "watched").exists() and mistakes() == []


def test_the_order_of_keys_and_the_way_of_numbers_make_no_other_call(files: list[Path]) -> None:
    calls = Calls(files[0])
    calls.begin("", tool_input={"command": "make", "timeout": 5, "x": {"b": 1, "a": [2]}})
    files[0].write_text("x")
    assert calls.finish("", tool_input=json.dumps({"x": {"a": [2.0], "b": 1}, "timeout": 5.0, "command": "make"}))


def test_a_call_that_is_running_is_not_settled_away(files: list[Path]) -> None:
    calls = Calls(*files)
    calls.begin("1")
    files[0].write_text("x")
    later = time.time() + 5
    assert calls.settle("PreToolUse", later) == [("a", "changed")]
    files[1].write_text("x")
    assert calls.settle("Stop", later) == [("b", "changed")], "a shell's command may outlive its turn"
    files[2].write_text("x")
    compacted = SessionEvent(calls.session, name="SessionStart", source="compact")
    assert seen(watch.settle(Config, compacted, later)) == [("c", "changed")] and is_watching()
    assert calls.finish("1") == [], "each file is told once for each call"
    calls.begin("2", tool_name="mcp__x__y")
    assert calls.settle("Stop", later) == []
    files[2].write_text("y")
    assert calls.finish("2", tool_name="mcp__x__y") == [], "a tool's call does not"


def test_records_do_not_stay_for_ever(files: list[Path], state: Path) -> None:
    calls, gone = Calls(*files), Calls(*files, session="s-2")
    gone.begin("")
    folder = state / "watched" / "s-2"
    os.utime(folder, (time.time() - 90000,) * 2)
    for number in range(records.RECORDS_AT_ONCE + 5):
        calls.begin(str(number))
    assert not folder.exists()
    assert len(list((state / "watched" / "s-1").iterdir())) == records.RECORDS_AT_ONCE
    assert calls.settle("Stop", time.time() + watch.UNTOLD_SECONDS + 1) == []
    assert not (state / "watched").exists()


def test_a_hook_that_is_killed_while_it_compares_leaves_the_record_to_the_next(files: list[Path], state: Path) -> None:
    calls = Calls(*files)
    calls.begin("1")
    (name,) = records.names_of("s-1")
    assert records.take("s-1", name) is not None  # and no more is heard of it
    files[0].write_text("x")
    assert calls.finish("1") == [] and calls.settle("Stop") == []
    assert calls.settle("Stop", time.time() + 120) == [("a", "changed")]


def test_a_hook_that_compares_has_the_record_for_itself_however_long_the_call_runs(files: list[Path]) -> None:
    calls = Calls(*files)
    calls.begin("1")
    (name,) = records.names_of("s-1")
    (folder,) = Path(records.folder_of("s-1")).parent.iterdir()
    key, begun = name.split(".")
    long_ago = f"{key}.{time.time_ns() - 120 * 10**9:x}-{begun.partition('-')[2]}"
    (folder / name).rename(folder / long_ago)
    mine = records.take("s-1", long_ago)
    files[0].write_text("x")
    assert mine is not None and calls.settle("PreToolUse") == [], "one hook tells of a change"
    records.put_back(mine)
    assert records.names_of("s-1") == [long_ago] and calls.settle("PreToolUse") == [("a", "changed")]


@pytest.mark.parametrize("is_before", [True, False])
def test_a_record_that_another_hook_drops_does_not_come_back(is_before: bool, files: list[Path], monkeypatch) -> None:
    calls, real = Calls(*files), records.write_private

    def beside_the_other(path: str, text: str) -> None:
        if not is_before:
            real(path, text)
        for name in records.names_of("s-1"):
            records.drop(os.path.join(records.folder_of("s-1"), name))
        if is_before:
            real(path, text)

    calls.begin("1")
    files[0].write_text("x")
    monkeypatch.setattr(records, "write_private", beside_the_other)
    assert calls.settle("PreToolUse", time.time() + 5) == [("a", "changed")]
    assert not is_watching() and mistakes() == []


def test_a_record_without_a_change_is_not_written_anew(files: list[Path]) -> None:
    calls = Calls(*files)
    calls.begin("1")
    (path,) = Path(records.folder_of("s-1")).iterdir()
    before = path.stat()
    assert calls.settle("PreToolUse", time.time() + 5) == []
    assert os.path.samestat(path.stat(), before) and path.stat().st_mtime_ns == before.st_mtime_ns
    files[0].write_text("x")
    assert calls.settle("PreToolUse", time.time() + 5) == [("a", "changed")]
    mine = records.take("s-1", path.name)
    assert mine is not None
    records.drop(mine.path)  # another hook took it for left behind
    records.put_back(mine, is_unchanged=True)
    assert records.names_of("s-1") == [] and mistakes() == []


def test_twenty_checks_of_a_session_at_once_record_no_fault(repo: Path, state: Path) -> None:
    """Some find more records than there is room for, and records of calls that have run for long."""
    me = new_session()
    assert start("codex", me, repo).context
    peer_locks(repo, repo / "f")
    for round_ in ("one", "two"):
        threads = [
            threading.Thread(target=begun, args=("codex", me, repo, f"make {round_}-{number}")) for number in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for record in (state / "watched" / me).iterdir():
            key, begin, *more = record.name.split(".")
            begin, _, whose = begin.partition("-")
            two_minutes_ago = f"{int(begin, 16) - 120 * 10**9:x}"
            record.rename(record.with_name(".".join([key, f"{two_minutes_ago}-{whose}", *more])))
    assert fault_lines() == []


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"locks": 3}', b"\xff\xfe"])
def test_a_torn_record_is_dropped(content: bytes, files: list[Path], state: Path) -> None:
    calls = Calls(*files)
    calls.begin("1")
    (record,) = (state / "watched" / "s-1").iterdir()
    record.write_bytes(content)
    assert calls.finish("1") == [] and not (state / "watched").exists()


def test_marks_of_the_holder_s_own_calls(files: list[Path], state: Path) -> None:
    theirs = Calls(session="holding").call("x", tool_name="Write")
    calls = Calls(*files)
    calls.begin("1")
    mark_own(theirs, "holder", files[0])
    mark_own(theirs, "else", files[1])
    for file in files[:2]:
        file.write_text("x")
    assert calls.finish("1") == [("b", "changed")]


def test_a_call_of_the_holder_s_that_may_write_anything_counts_while_it_runs(files: list[Path]) -> None:
    calls, theirs = Calls(*files), Calls(session="holding")
    calls.begin("0")  # something is being watched
    own = theirs.call("x", tool_input={"command": "pytest"})
    mark_own(own, "holder")
    calls.begin("1")
    files[0].write_text("x")
    assert watch.finish(Config, own) == []
    time.sleep(0.1)
    files[1].write_text("x")
    assert calls.finish("1") == [("b", "changed")]


def kept_files(state: Path) -> list[Path]:
    return [one for one in sorted((state / "kept").glob(f"*/{kept.LOCKED}/*")) if not one.name.endswith(PATH)]


def test_a_content_is_kept_once(files: list[Path], state: Path) -> None:
    calls = Calls(*files)
    for file in files:
        os.utime(file, (1e9, 1e9))
    for call in "123":
        calls.begin(call)
        calls.finish(call)
    assert sorted(path.read_text() for path in kept_files(state)) == [f"{n} of the holder\n" for n in "abc"]
    assert {path.stat().st_mode & 0o777 for path in kept_files(state)} == {0o400 | files[0].stat().st_mode & 0o177}
    assert (state / "kept").stat().st_mode & 0o777 == 0o700


def test_two_writes_within_one_tick_are_two_contents(files: list[Path], state: Path) -> None:
    calls, times = Calls(files[0]), (time.time(),) * 2
    for text in ("one", "two"):
        files[0].write_text(text)
        os.utime(files[0], times)
        calls.begin(text)
        calls.finish(text)
    assert {path.read_text() for path in kept_files(state)} >= {"two"}
    calls.begin("3")
    files[0].write_text("mine")
    (change,) = watch.finish(Config, calls.call("3"))
    assert Path(change.kept).read_text() == "two"


@pytest.mark.parametrize(
    ("deed", "kind"),
    [
        (lambda file: file.write_text("x"), "changed"),
        (lambda file: file.chmod(0o600), "changed"),
        (lambda file: os.utime(file), ""),
        (lambda file: os.link(file, f"{file}2"), ""),
        (lambda file: file.unlink(), "removed"),
        (lambda file: (file.unlink(), file.mkdir()), "replaced"),
        (lambda file: (file.unlink(), os.mkfifo(file)), "replaced"),
        (lambda file: (file.unlink(), file.symlink_to("/etc/passwd")), "replaced"),
        (lambda file: (Path(f"{file}2").write_text("x"), os.replace(f"{file}2", file)), "replaced"),
        (lambda file: (Path(f"{file}2").write_text(file.read_text()), os.replace(f"{file}2", file)), ""),
    ],
)
def test_kinds_of_change(deed: Any, kind: str, files: list[Path]) -> None:
    calls = Calls(files[0])
    files[0].chmod(0o644)
    calls.begin("1")
    deed(files[0])
    assert calls.finish("1") == ([("a", kind)] if kind else [])


def test_a_locked_name_that_appears(files: list[Path], tmp_path: Path) -> None:
    calls = Calls(tmp_path / "new")
    calls.begin("1")
    (tmp_path / "new").write_text("x")
    (change,) = watch.finish(Config, calls.call("1"))
    assert (change.kind, change.kept, change.why) == ("created", "", "there was no such file")


def test_what_is_no_plain_file_is_never_opened(tmp_path: Path, state: Path) -> None:
    pipe, link, target = tmp_path / "pipe", tmp_path / "link", tmp_path / "target"
    os.mkfifo(pipe)
    target.write_text("x")
    link.symlink_to(target)
    calls = Calls(pipe, link, Path("/dev/zero"))
    calls.begin("1")  # to open the pipe, or to read /dev/zero to its end, would never end
    assert [path.read_text() for path in kept_files(state)] == ["x"], "what a locked link leads to is watched"
    target.write_text("y")
    assert calls.finish("1") == [("target", "changed")]


def test_a_file_that_cannot_be_read_is_watched_all_the_same(files: list[Path], failing) -> None:
    for where, reader in ((kept, "read_resolved"), (records, "read")):
        failing(where, reader, PermissionError(13, "Permission denied"))
    _changes_without_content(files[0], "Permission denied")


def test_a_large_file_is_watched_and_not_kept(files: list[Path], state: Path) -> None:
    files[0].write_bytes(b"x" * (kept.LIMIT_BYTES + 1))
    _changes_without_content(files[0], "larger than 1024 KiB")


def _changes_without_content(file: Path, why: str) -> None:
    calls = Calls(file)
    calls.begin("1")
    assert calls.finish("1") == []
    calls.begin("2")
    file.chmod(0o600)
    file.write_text("short")
    (change,) = watch.finish(Config, calls.call("2"))
    assert change.kept == "" and why in change.why


def test_a_content_with_the_earlier_size_and_time_is_another_one(files: list[Path], state: Path) -> None:
    file = files[0]
    then = time.time() - 100
    file.write_text("earlier\n")
    os.utime(file, (then, then))
    earlier = kept.Kept().keep(str(file))[1]
    file.write_text("another\n")
    os.utime(file, (then, then))
    os.utime(earlier.path, (then + 50, then + 50))
    assert kept.Kept().copy_of(str(file), records.glance(str(file))) is None
    kept.Kept().keep(str(file))
    assert sorted(path.read_text() for path in kept_files(state)) == ["another\n", "earlier\n"], "both can be restored"
    assert pruning.prune_versions(time.time() + pruning.AGE_SECONDS + 10) == 2 and kept_files(state) == []


def test_room_is_made_by_dropping_the_oldest(files: list[Path], state: Path, limits: Limits) -> None:
    """All kept contents have one bound; a call says that its copy has gone."""
    limits(pruning, TOTAL_BYTES=40)  # two of them
    calls = Calls(*files)
    calls.begin("1")
    pruning.prune_versions(time.time())
    assert len(kept_files(state)) == 2
    for file in files:
        file.write_text("y" * 30)
    found = watch.finish(Config, calls.call("1"))
    assert sorted(bool(change.kept) for change in found) == [False, True, True]
    assert ["room" in change.why for change in found if not change.kept] == [True]


def test_a_planted_link_is_not_written_through(files: list[Path], state: Path, tmp_path: Path) -> None:
    victim = text_at(tmp_path / "victim", "precious")
    folder = folder_at(tmp_path / "elsewhere")
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    (state / "kept").symlink_to(folder)
    calls = Calls(files[0])
    calls.begin("1")
    assert list(folder.iterdir()) == [], "a folder that is a link is somebody else's"
    files[0].write_text("x")
    (change,) = watch.finish(Config, calls.call("1"))
    assert change.kept == "" and "could not be kept" in change.why
    (state / "kept").unlink()
    copy = kept.Kept().keep(str(files[0]))[1]
    os.remove(copy.path)
    os.symlink(victim, copy.path)
    again = kept.Kept().keep(str(files[0]))[1]
    assert victim.read_text() == "precious" and again.path != copy.path


def test_a_locked_folder_is_watched_file_by_file_within_bounds(tmp_path: Path, state: Path) -> None:
    folder = tmp_path.resolve() / "src"
    (folder / "deep" / ".git").mkdir(parents=True)
    for name in ("a", "b", "deep/c", "deep/.git/index"):
        (folder / name).write_text(name)
    calls = Calls(folder)
    calls.begin("1")
    (folder / "a").write_text("x")
    (folder / "deep" / "c").unlink()
    (folder / "deep" / "new").write_text("x")
    (folder / "deep" / ".git" / "index").write_text("x")
    assert sorted(calls.finish("1")) == [("a", "changed"), ("c", "removed"), ("new", "created")]
    for number in range(watch.FILES_IN_FOLDER + 20):
        (folder / f"n{number:03}").write_text("x")
    calls.begin("2")
    (folder / "n000").write_text("y")
    (folder / "n000a").write_text("y")
    (folder / "n219").write_text("y")  # beyond the bound
    assert sorted(calls.finish("2")) == [("n000", "changed"), ("n000a", "created")]


def test_a_locked_repository_is_watched_by_its_refs(tmp_path: Path) -> None:
    folder = tmp_path.resolve() / ".git"
    (folder / "refs" / "heads").mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "index").write_text("x")
    calls = Calls(folder)
    calls.begin("1")
    (folder / "index").write_text("y")  # as `git status` does
    (folder / "refs" / "heads" / "main").write_text("0" * 40)
    assert calls.finish("1") == [("main", "created")]


def test_nothing_that_goes_wrong_costs_the_call(files: list[Path], state: Path) -> None:
    calls = Calls(files[0])
    text_at(state / "watched", "a file in the place of the folder")
    calls.begin("1")
    assert calls.finish("1") == [] and calls.settle("Stop") == []
    assert "watch" in {line["hook"] for line in fault_lines()}
    odd = [Held(value, "h", None, None, None) for value in ("", "\ud800", "a\0b", "/" + "x/" * 3000)]
    os.remove(state / "watched")
    watch.begin(Config, calls.call("2"), odd, time.time(), kept.Kept)
    watch.finish(Config, calls.call("2"))

"""The MCP server with faulty clients, systems and stores, over real pipes."""

import json
import os
import select
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from support.fixtures import SWARM, Ground, Sleeper, wait_for, without_privileges
from support.serving import CLIENT_BETWEEN, INITIALIZE, INITIALIZED, Server, ask, call, lines, one_shot

from swarm_hook_core.process import start_time
from swarm_mcp.server.app import ClientProcess, StandardError

pytestmark = pytest.mark.slow


def raw(server: Server, *data: bytes) -> None:
    server.process.stdin.write(b"\n".join(data) + b"\n")
    server.process.stdin.flush()


def gathered(server: Server, count: int, seconds: float = 30) -> list[dict]:
    """The next `count` messages, and that there are no more."""
    found = []
    end = time.monotonic() + seconds
    while len(found) < count:
        message = server.next_message(end - time.monotonic())
        assert message is not None, f"only {len(found)} of {count} messages came"
        found.append(message)
    assert server.next_message(0.1) is None
    return found


def test_whatever_a_client_writes_is_answered(ground: Ground):
    deep, bottomless = (
        b'{"jsonrpc":"2.0","id":"deep","method":"ping","params":{"a":' + b"[" * depth + b"]" * depth + b"}}"
        for depth in (300, 200_000)
    )
    refused = [
        (b"this is no JSON", None), (b'{"jsonrpc":"2.0","id":', None), (b"[]", None), (b"7", None), (b"null", None),
        (b'{"jsonrpc":"2.0","id":50,"method":"ping","params":[]}', 50), (b'{"id":51,"method":"ping"}', 51),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None), (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None),
        (b'{"jsonrpc":"1.0","id":"odd","method":"ping"}', "odd"), (deep, "deep"), (bottomless, "deep"),
        (b'{"jsonrpc":"2.0","id":52,"method":"tools/call","params":{"name":"lock_file","arguments":{"file":"\xff"}}}', 52),
        (lines(call(53, "lock_file", file="\ud800")).strip(), 53),
        (b'{"jsonrpc":"2.0","id":54}', 54), (b'[{"jsonrpc":"2.0","id":55}, 8]', [55, None]),
    ]  # fmt: skip
    with Server(ground) as server:
        me = server.value("register", {"directory": ground.scope})
        for line, number in refused:
            raw(server, line)
            numbers = number if isinstance(number, list) else [number]
            answers = gathered(server, len(numbers))
            assert [answer["id"] for answer in answers] == numbers, line[:80]
            assert all(len(answer["error"]["message"]) < 100 for answer in answers)
        assert ground.sql("SELECT id FROM context") == []

        raw(server, json.dumps([call("a", "whoami"), INITIALIZED, call(61, "whoami"), ask(62, "ping")]).encode())
        batch = {answer["id"]: answer["result"] for answer in gathered(server, 3)}
        assert batch["a"]["structuredContent"]["id"] == batch[61]["structuredContent"]["id"] == me["id"]
        assert batch[62] == {}

        # An answer to nothing, and notices of nothing, are no harm.
        raw(
            server,
            b'{"jsonrpc":"2.0","id":999,"result":{}}',
            b'{"jsonrpc":"2.0","id":null,"method":"no/such"}',
            b"",
            b"  ",
        )
        # Ids of either kind, and one for two requests at a time.
        raw(server, *lines(call("7", "whoami"), call("x" * 5000, "whoami"), call(2**60, "whoami")).splitlines())
        assert {str(answer["id"]) for answer in gathered(server, 3)} == {"7", "x" * 5000, str(2**60)}
        peer = ground.session("peer", "peer")
        with ground.store() as store:
            for content in ("one", "two"):
                store.messages.send(peer, me["id"], content)
        raw(server, *lines(call(70, "poll_messages", limit=1), call(70, "poll_messages", limit=1)).splitlines())
        mail = [
            item["content"] for answer in gathered(server, 2) for item in answer["result"]["structuredContent"]["items"]
        ]
        assert sorted(mail) == ["one", "two"]
        wait_for(lambda: not ground.sql("SELECT id FROM messages WHERE read = 0"))

        for uri in (
            "swarm://[",
            "swarm://lock?" + "&".join("file=a" for _ in range(5000)),
            "swarm://\0",
            "x" * 100_000,
        ):
            error = server.ask("resources/read", {"uri": uri})["error"]
            assert "swarm://inbox" in error["message"] and len(error["message"]) < 1000

        big = "x" * 10_000_000
        for tool, arguments in (
            ("lock_file", {"file": big}),
            ("lock_file", {"file": ["a"] * 100_000}),
            ("lock_file", {big: 1}),
        ):
            result = server.call(tool, arguments)
            text = json.dumps(result)
            assert ("error" in result or result["isError"]) and len(text) < 5000, text[:200]
        for method, parameters in (("tools/call", {"name": big}), ("prompts/get", {"name": big}), (big, {})):
            assert len(server.ask(method, parameters)["error"]["message"]) < 2000
        assert server.value("whoami")["id"] == me["id"]
        assert b"Traceback" not in _ended(server)


MANY = b"7" * 5000


def test_what_is_wrong_with_a_request_is_named(ground: Ground):
    deep = b"[" * 300 + b"]" * 300
    refused = [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + MANY + b"}}", 1, "4,300 digits"),
        (b'{"jsonrpc":"2.0","id":' + MANY + b',"method":"ping"}', None, "the id of a request"),
        (b'{"jsonrpc":"2.0","id":2,"method":"ping","params":{"a":' + deep + b"}}", 2, "nests too deeply"),
        (b'{"jsonrpc":"2.0","id":3,\xef\xbb\xbf"method":"ping"}', None, "not JSON"),
    ]
    with Server(ground) as server:
        raw(server, *(line for line, _, _ in refused))
        for answer, (line, number, words) in zip(gathered(server, len(refused)), refused, strict=True):
            assert answer["id"] == number and words in answer["error"]["message"], (line[:60], answer)
        raw(server, b'\xef\xbb\xbf{"jsonrpc":"2.0","id":4,"method":"ping"}')
        assert gathered(server, 1) == [{"jsonrpc": "2.0", "id": 4, "result": {}}]
    mark = b"\xef\xbb\xbf"
    answers = one_shot(
        ground,
        b"".join(mark + line for line in lines(INITIALIZE, INITIALIZED, ask(9, "ping")).splitlines(keepends=True)),
    )
    assert [answer["id"] for answer in answers if "result" in answer] == [answer["id"] for answer in answers]


@pytest.mark.thorough
def test_a_wait_lasts_a_number_of_seconds(ground: Ground):
    ground.lock(ground.session("holder"), "f.txt")
    with Server(ground) as server:
        server.value("register", {"directory": ground.scope})
        for seconds in (b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1", b'"5"', b"true", b"[NaN]"):
            raw(server, b'{"jsonrpc":"2.0","id":90,"method":"tools/call","params":{"name":"lock_file","arguments":'
                b'{"file":"f.txt","wait_seconds":' + seconds + b"}}}")  # fmt: skip
            result = gathered(server, 1)[0]["result"]
            assert result["isError"] and result["content"][0]["text"].startswith(
                "MCP error -32602: lock_file: wait_seconds"
            ), result
        raw(server, b'{"jsonrpc":"2.0","id":91,"method":"tools/call","params":{"name":"unlock_file","arguments":'
            b'{"file":"f.txt","fence":' + b"7" * 30 + b"}}}")  # fmt: skip
        assert gathered(server, 1)[0]["result"]["content"][0]["text"].startswith(
            "MCP error -32602: unlock_file: fence: "
        )


@pytest.mark.thorough
def test_a_client_that_does_not_read_standard_error_is_answered(ground: Ground, tmp_path: Path):
    """It reports on standard error that it cannot open its store, into a pipe that is full."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writes, b"x" * 4096)
    os.set_blocking(writes, True)
    (tmp_path / "file").touch()
    environment = {**os.environ, "SWARM_STATE_DIR": str(tmp_path / "file" / "state")}
    try:
        with Server(ground, stderr=writes, env=environment) as server:
            me = server.value("register", {"directory": ground.scope})
            assert server.value("whoami")["id"] == me["id"]
            while len(os.read(reads, 1 << 20)) == 1 << 20:
                pass
            server.close_input()
            assert server.ended_within(60) == 0
    finally:
        os.close(reads)
        os.close(writes)


def test_what_is_said_on_standard_error_is_cut_and_left_out_where_nobody_reads(tmp_path: Path):
    reads, writes = os.pipe()
    said = StandardError(writes)
    print("a word", "and another", file=said)
    print("ä" * 100_000, file=said)
    assert os.read(reads, 1 << 20).decode().startswith("a word and another\nä")
    for number in range(5000):
        print(f"{number} {'x' * 900}", file=said)
    os.set_blocking(reads, False)
    kept = 0
    with pytest.raises(BlockingIOError):
        while True:
            kept += os.read(reads, 1 << 20).count(b"\n")
    assert 0 < kept < 5000
    print("the next", file=said)
    assert os.read(reads, 1 << 20).decode().splitlines() == [
        f"swarm-mcp serve: {5000 - kept} lines were left out here: nobody read them", "the next",
    ]  # fmt: skip
    os.close(reads)
    print("nobody is there", file=said, flush=True)
    os.close(writes)
    assert StandardError(writes).write("closed\n") == 7


def test_a_resource_of_what_can_be_no_path_is_none(ground: Ground):
    with Server(ground) as server:
        server.value("register", {"directory": ground.scope})
        for file in ("x" * 5000, "a%00b", "%2e" * 100_000):
            error = server.ask("resources/subscribe", {"uri": f"swarm://lock?file={file}"})["error"]
            assert "there is no resource" in error["message"] and len(error["message"]) < 600
        assert _ended(server) == b""


def _ended(server: Server) -> bytes:
    """Close the server's input; return its standard error."""
    server.close_input()
    assert server.ended_within(60) == 0
    return server.process.stderr.read()


@pytest.mark.thorough
def test_a_client_that_writes_on_without_reading_is_answered_in_full_later(ground: Ground):
    """Hundreds of open requests, and megabytes of unread answers: more than any pipe holds."""
    count = 300
    with Server(ground) as server:
        server.value("register", {"directory": ground.scope})
        requests = [
            ask(1000 + n, "tools/list") if n % 3 else call(1000 + n, "lock_file", file=f"f{n}") for n in range(count)
        ]
        writer = threading.Thread(target=raw, args=(server, *[json.dumps(r).encode() for r in requests]), daemon=True)
        writer.start()
        writer.join(60)
        assert not writer.is_alive(), "the server does not read while it cannot write"
        # A line that has to be refused must not stop it either.
        raw(server, b"no message")
        time.sleep(0.3)
        answers = gathered(server, count + 1, 60)
        numbers = [answer["id"] for answer in answers if answer["id"] is not None]
        assert sorted(numbers) == [1000 + n for n in range(count)]
        assert not [answer for answer in answers if "error" in answer and answer["id"] is not None]
        assert len(ground.sql("SELECT id FROM context")) == count // 3

        # And one that never reads again, but leaves: nothing is waited for for ever.
        raw(server, *[json.dumps(request).encode() for request in requests])
        server.close_input()
        assert server.ended_within(60) == 0
        assert ground.sql("SELECT id FROM instances") == []


def flood(server: Server, request: bytes, most: int) -> tuple[int, bytes]:
    """Write the request until the server takes nothing for a second. Return the number of requests, and the rest of the
    last.
    """
    handle, count, rest = server.process.stdin.fileno(), 0, b""
    os.set_blocking(handle, False)
    while count * len(request) < most and select.select([], [handle], [], 1)[1]:
        if not rest:
            count, rest = count + 1, request
        rest = rest[os.write(handle, rest) :]
    os.set_blocking(handle, True)
    return count, rest


@pytest.mark.parametrize("ends", ["by a signal", "by the end of its input", "with its client's reading"])
@pytest.mark.thorough
def test_no_more_is_read_while_megabytes_wait_to_be_read(ground: Ground, ends: str):
    most = 24 * 1024 * 1024
    request = json.dumps({**ask(7, "tools/list"), "params": {"_meta": {"padding": "x" * 50_000}}}).encode() + b"\n"
    with Server(ground) as server:
        server.value("register", {"directory": ground.scope})
        count, rest = flood(server, request, most)
        assert count * len(request) < most / 2, "it reads on and on"
        if ends == "with its client's reading":
            writer = threading.Thread(target=server.process.stdin.write, args=(rest + request,), daemon=True)
            writer.start()
            assert [answer["id"] for answer in gathered(server, count + 1, 60)] == [7] * (count + 1), "then it goes on"
            writer.join(60)
            server.process.stdin.flush()
        if ends == "by a signal":
            server.process.send_signal(signal.SIGTERM)
        else:
            server.close_input()
        assert server.ended_within(60) == 0
        assert ground.sql("SELECT id FROM instances") == []


@pytest.mark.thorough
def test_a_file_and_nothing_as_input(ground: Ground, tmp_path: Path):
    """All requests of a file are answered, though the input ends long before the last answer."""
    requests = [
        INITIALIZE,
        INITIALIZED,
        *(call(n, "kv_get", key="k") for n in range(2, 30)),
        call(30, "wait_for_activity"),
    ]
    file = tmp_path / "requests"
    file.write_bytes(lines(*requests) + b'{"jsonrpc":"2.0","id":31,"method":"pi')
    with file.open("rb") as stream:
        done = subprocess.run([*SWARM, "serve"], cwd=ground.repo, stdin=stream, capture_output=True, timeout=60)
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 0 and sorted(answers, key=str) == sorted([*range(1, 31), None], key=str), done.stderr
    assert all("result" in answers[n] for n in range(1, 30)), "only what waits for something to happen is given up"
    for redirection in ("</dev/null", "<&-", "<&- >&-", "<&- >&- 2>&-", "</dev/null >&-"):
        command = f'exec "$@" serve {redirection}'
        done = subprocess.run(["sh", "-c", command, "sh", *SWARM], cwd=ground.repo, capture_output=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), redirection


def cancel(server: Server, number) -> None:
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})


def polled(server: Server) -> list[dict]:
    return server.call("poll_messages")["structuredContent"]["items"]


def test_what_is_cancelled_is_not_begun_and_what_it_took_is_put_back(ground: Ground):
    with Server(ground) as server:
        me = server.value("register", {"directory": ground.scope})
        peer = ground.session("peer", "peer")
        with ground.store() as store:
            store.messages.send(peer, me["id"], "for whoever asks again")
        with ground.store() as store, store.database.writing():
            running = server.begin("tools/call", {"name": "poll_messages", "arguments": {}})
            others = [
                server.begin("tools/call", {"name": "lock_file", "arguments": {"file": f"f{n}"}}) for n in range(3)
            ]
            queued = server.begin("tools/call", {"name": "lock_file", "arguments": {"file": "queued"}})
            time.sleep(0.3)
            for number in (queued, str(running), 12345, "none", None, {"a": 1}, 1):
                cancel(server, number)
            # Reads do not wait for a writer: it writes until they are answered.
            assert server.value("whoami")["id"] == me["id"]
            assert server.value("get_file_lock", {"file": "f0"})["active"] is None
            assert json.loads(server.ask("resources/read", {"uri": "swarm://instances"})["contents"][0]["text"])
            waiting = server.begin("tools/call", {"name": "wait_for_activity", "arguments": {"timeout_seconds": 0}})
            cancel(server, waiting)
        locked = {answer["id"]: answer["result"]["structuredContent"]["ok"] for answer in gathered(server, 3)}
        assert locked == dict.fromkeys(others, True)
        wait_for(lambda: not ground.sql("SELECT * FROM swarm_deliveries"))
        assert [row["content"] for row in polled(server)] == ["for whoever asks again"]
        assert polled(server) == []
        files = [row["file"] for row in ground.sql("SELECT file FROM context")]
        assert sorted(files) == [f"{ground.scope}/f{n}" for n in range(3)]
        assert server.notifications == [], "what is cancelled is not answered"


def test_mail_in_an_answer_that_is_cancelled_on_its_way_is_for_the_next_poll(ground: Ground):
    with Server(ground) as server:
        me = server.value("register", {"directory": ground.scope})
        peer = ground.session("peer", "peer")
        with ground.store() as store:
            for _ in range(40):
                store.messages.send(peer, me["id"], "x" * 10_000)
        # The client reads nothing: the answer is too long for the pipe.
        number = server.begin("tools/call", {"name": "poll_messages", "arguments": {}})
        wait_for(lambda: ground.sql("SELECT * FROM swarm_deliveries"))
        time.sleep(0.2)
        cancel(server, number)
        wait_for(lambda: not ground.sql("SELECT * FROM swarm_deliveries"))
        assert ground.sql("SELECT DISTINCT read FROM messages") == [{"read": 0}]
        assert len([mail for answer in iter(lambda: polled(server), []) for mail in answer]) == 40
        wait_for(lambda: ground.sql("SELECT DISTINCT read FROM messages") == [{"read": 1}])


@pytest.fixture
def reserved(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """Servers started here have an instance before they are asked anything, and so something to leave."""
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", "reserved")
    ground.store().close()
    return ground


def left(ground: Ground) -> bool:
    return ground.sql("SELECT id FROM instances") == []


@pytest.mark.usefixtures("usual_signals")
@pytest.mark.parametrize("moment", ["opening", "import", "busy store"])
@pytest.mark.thorough
def test_every_signal_at_every_moment_ends_it_in_order(reserved: Ground, moment: str):
    one_shot(reserved, lines(INITIALIZE, INITIALIZED))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with Server(reserved) as server:
            assert reserved.sql("SELECT id FROM instances") == [{"id": "reserved"}]
            if moment == "import":
                server.begin("tools/call", {"name": "whoami", "arguments": {}})
                time.sleep(0.25 + 0.1 * (number % 3))
            if moment == "busy store":
                with reserved.store() as store, store.database.writing():
                    server.process.send_signal(number)
                    time.sleep(0.4)
            server.process.send_signal(number)
            server.process.send_signal(number)
            assert server.ended_within(60) == 0
            assert left(reserved)
            assert server.process.stderr.read() == b""


@pytest.mark.thorough
def test_with_a_store_that_somebody_keeps_it_ends_all_the_same(reserved: Ground):
    with Server(reserved) as server, reserved.store() as store, store.database.writing():
        server.begin("tools/call", {"name": "lock_file", "arguments": {"file": "f"}})
        server.begin("tools/call", {"name": "wait_for_activity", "arguments": {"timeout_seconds": 0}})
        assert server.ask("ping") == {}
        server.close_input()
        assert server.ended_within(60) == 0
        assert b"Traceback" not in server.process.stderr.read()


def test_it_outlives_its_terminal_where_that_was_asked_for(ground: Ground):
    program = ["nohup", *SWARM, "serve"]
    with subprocess.Popen(
        program, cwd=ground.repo, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        for _ in range(10):
            time.sleep(0.05)
            process.send_signal(signal.SIGHUP)
        assert process.poll() is None
        assert process.communicate(b"", 20)[0] == b"" and process.returncode == 0


def test_it_ends_at_once_where_its_client_leaves_or_hears_no_more(ground: Ground):
    # Input closed while a call waits.
    with Server(ground) as server:
        server.value("register", {"directory": ground.scope})
        server.begin("tools/call", {"name": "wait_for_activity", "arguments": {"timeout_seconds": 0}})
        assert server.ask("ping") == {}
        assert b"Traceback" not in _ended(server)
        assert left(ground)
    # Output closed, input open: before the event loop, and in it.
    one_shot(ground, lines(INITIALIZE, INITIALIZED, ask(2, "ping")))
    for asks in (("ping", {}), ("tools/call", {"name": "whoami", "arguments": {}})):
        with Server(ground) as server:
            if asks[0] != "ping":
                server.value("register", {"directory": ground.scope})
            server.process.stdout.close()
            server.begin(*asks)
            assert server.ended_within(60) == 0
            assert left(ground) and b"Traceback" not in server.process.stderr.read()
            server.process.stdout = None


@pytest.mark.parametrize("call_waits", [False, True])
def test_it_ends_with_a_client_that_is_killed_though_a_sibling_keeps_the_pipe_open(ground: Ground, call_waits: bool):
    with Server(ground, CLIENT_BETWEEN) as server:
        pid = int(server.process.stderr.readline())
        server.value("register", {"directory": ground.scope})
        server.value("lock_file", {"file": "f"})
        if call_waits:
            server.begin("tools/call", {"name": "wait_for_activity", "arguments": {"timeout_seconds": 0}})
            assert server.ask("ping") == {}
        server.process.kill()
        server.process.wait()
        wait_for(lambda: start_time(pid) in ("", "-"), 10)
        assert left(ground) and ground.sql("SELECT id FROM context") == ground.sql("SELECT * FROM swarm_sessions") == []


def test_locks_of_a_killed_server_stay_with_its_client_and_go_to_its_next_server(ground: Ground):
    with Server(ground) as killed:
        row = killed.value("register", {"directory": ground.scope})
        assert killed.value("lock_file", {"file": "f"})["ok"] is True
        killed.process.kill()
    peer = ground.session("peer", "peer", client=(1, start_time(1)))
    assert ground.swarm("lock", "f", "--as", peer["id"]).code == 1
    with Server(ground) as following:
        assert following.value("whoami")["id"] == row["id"]
        assert following.value("lock_file", {"file": "f"})["ok"] is True
        assert "Unlocked" in following.text("unlock_file", {"file": "f"})
        assert following.value("lock_file", {"file": "f"})["ok"] is True
        following.process.kill()
    with Sleeper() as client:
        ground.sql(
            "UPDATE swarm_sessions SET client_pid = ?, client_start = ? WHERE instance_id = ?",
            client.pid,
            client.started,
            row["id"],
        )
    assert [found["id"] for found in ground.swarm("instances", "--json").json] == [peer["id"]]
    ground.lock(peer, "f")


def test_a_store_that_goes_changes_or_cannot_be_written_while_the_server_lives(ground: Ground):
    with Server(ground, preexec_fn=without_privileges) as server:
        server.value("register", {"directory": ground.scope})
        folder = Path(ground.database).parent
        for path in folder.iterdir():
            path.unlink()
        assert "Not registered" in server.text("whoami")
        me = server.value("register", {"directory": ground.scope})
        assert server.value("lock_file", {"file": "f"})["ok"] is True

        # Replaced by another one, as a restored backup is.
        aside = ground.folder / "aside"
        os.rename(folder, aside)
        ground.store().close()
        assert "Not registered" in server.text("whoami")
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        os.rename(aside, folder)
        assert server.value("whoami")["id"] == me["id"]

        # No longer writable. An open store stays open; opened anew, it is refused in a line.
        ground.sql("PRAGMA wal_checkpoint(TRUNCATE)")
        copy = folder / "copy"
        copy.write_bytes(Path(ground.database).read_bytes())
        for path in folder.iterdir():
            if path != copy:
                path.unlink()
        os.rename(copy, ground.database)
        os.chmod(ground.database, 0o400)
        os.chmod(folder, 0o500)
        try:
            refused = server.call("lock_file", {"file": "g"})
            assert refused["isError"] is True and ground.database in refused["content"][0]["text"]
            assert "\n" not in refused["content"][0]["text"]
            assert server.ask("ping") == {}
        finally:
            os.chmod(folder, 0o700)
            os.chmod(ground.database, 0o600)
        assert server.value("lock_file", {"file": "g"})["ok"] is True


@pytest.mark.parametrize("told", [True, False])
def test_the_end_of_a_process_is_noticed(told: bool, monkeypatch: pytest.MonkeyPatch):
    if not told:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
        monkeypatch.delattr(select, "kqueue", raising=False)
    with Sleeper() as client:
        end = ClientProcess(*client.identity)
        assert end.wait_for_end(0.2) is False
        threading.Timer(0.3, client.process.kill).start()
        assert end.wait_for_end(60) is True
    assert ClientProcess(*client.identity).wait_for_end(60) is True, "it had gone before anybody looked"
    assert ClientProcess(os.getpid(), "another start").wait_for_end(60) is True, "another process has its number"
    assert ClientProcess(0, "").wait_for_end(0.05) is False

"""The harness `claude` on the real client: supervised runs, models scripted on loopback."""

import base64
import http.server
import json
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.requirement import requirement

from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.claude import launch
from swarm_mcp.agents.harness.query import READ_ONLY, YOLO, McpServer, Query
from swarm_mcp.harness import PermissionAsked, PermissionRequest, TextDelta

from .clients import ClaudeCode
from .ground import own_ground
from .supervised_runs import (
    DOT,
    Supervised,
    as_own_environment,
    assert_abort_leaves_nothing,
    play_a_worker,
    porcelain,
)

CLAUDE = registry.get("claude")
SWARM = "mcp__swarm__"


@pytest.fixture(scope="module")
def shared() -> Iterator[ClaudeCode]:
    with own_ground("harness") as ground:
        claude = ClaudeCode(ground)
        claude.prepare()
        yield claude


@pytest.fixture
def claude(shared: ClaudeCode, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClaudeCode]:
    # As root the client takes --dangerously-skip-permissions in a sandbox only, and this is one.
    with as_own_environment(shared.ground, monkeypatch, IS_SANDBOX="1"):
        yield shared


def start(claude: ClaudeCode, script: str, *steps: Any, **wanted: Any) -> Supervised:
    return Supervised(claude, script, *steps, **wanted)


def system_prompt(claude: ClaudeCode, script: str) -> str:
    return json.dumps(claude.exchanges(script)[-1].body["system"])


def calls(*tools: tuple[str, dict]) -> list[dict]:
    """Return calls of MCP tools. They are offered only after a search for them."""
    query = "select:" + ",".join(name for name, _ in tools)
    return [{"name": "ToolSearch", "input": {"query": query}}, *({"name": n, "input": i} for n, i in tools)]


@pytest.mark.promise("a worker obeys locks")
@requirement("A-44", "A-46", "A-49", "D-13")
def test_a_worker_writes_reaches_the_swarm_and_is_held_back_by_a_lock(claude: ClaudeCode, tmp_path: Path) -> None:
    """Beside the common scene: another server in a folder of its own."""
    words = ("-c", f"pwd > {tmp_path}/where; exec cat")
    made, result = play_a_worker(
        claude, tmp_path, calls((f"{SWARM}whoami", {}), ("mcp__client_tools__weigh", {"what": "anchor"})),
        claude.replace("notes.md", "line one", "mine"),
        mcp_servers={"second": McpServer("/bin/sh", words, cwd=str(tmp_path))},
    )  # fmt: skip
    assert made.ends("Edit")[0]["is_error"] and "context_usage" in made.kinds()
    assert result.cost.total_cost_usd and result.cost.num_turns
    assert result.cost.model == result.model == "claude-opus-5-5" and result.provider == "anthropic"
    assert (tmp_path / "where").read_text() == f"{tmp_path}\n"


@requirement("A-33")
def test_sessions_are_resumed_in_their_folder_and_forked(claude: ClaudeCode) -> None:
    """Same id and only its own cost; the new system prompt counts; elsewhere a session of its own begins."""
    first = start(claude, "one", append_system_prompt="PROMPT-ONE").result()
    again = start(claude, "two", previous=first.session_params, append_system_prompt="PROMPT-TWO").result()
    assert again.session_id == first.session_id and not again.clear_session
    assert again.cost.total_cost_usd == pytest.approx(first.cost.total_cost_usd)
    assert again.session_cost.total_cost_usd == pytest.approx(2 * first.cost.total_cost_usd)
    assert len(claude.exchanges("two")[-1].body["messages"]) > len(claude.exchanges("one")[-1].body["messages"])
    assert "PROMPT-TWO" in system_prompt(claude, "two") and "PROMPT-ONE" not in system_prompt(claude, "two")
    wanted = {"previous": again.session_params, "fork_session": True, "system_prompt": "ALL OF IT"}
    fork = start(claude, "three", **wanted).result()
    assert fork.session_id != again.session_id and not fork.is_error
    assert fork.cost.total_cost_usd == pytest.approx(first.cost.total_cost_usd)
    assert "ALL OF IT" in system_prompt(claude, "three") and len(system_prompt(claude, "three")) < 1000
    made = start(claude, "four", previous=again.session_params, cwd=claude.ground.checkout / "sub")
    away = made.result()
    assert away.session_id not in (first.session_id, fork.session_id) and not away.is_error
    assert [data["category"] for data in made.told("error")] == ["session_not_found"]
    # By its bare id: in its own folder, and with its own part of the cost, by the price list, since the client counts
    # all.
    bare = start(claude, "five", resume_session_id=str(away.session_id), cwd=claude.ground.checkout / "sub").result()
    assert bare.session_id == away.session_id and bare.usage_basis == "per_run"
    assert bare.session_cost.total_cost_usd == pytest.approx(2 * away.cost.total_cost_usd)
    assert bare.cost.total_cost_usd == pytest.approx(away.cost.total_cost_usd, rel=0.01)
    made = start(claude, "six", resume_session_id=str(away.session_id))
    elsewhere = made.result()
    assert elsewhere.session_id != away.session_id and not elsewhere.is_error
    assert ["worked in another folder" in data["message"] for data in made.told("error")] == [True]


@requirement("A-34")
def test_a_session_that_is_not_there_is_begun_anew(claude: ClaudeCode) -> None:
    """A session without a transcript is not even tried; a refused one gets a fresh retry."""
    lost, cwd = "0b0e7a52-4f0f-4e3b-9a53-1f5b5d1c2a10", str(claude.ground.checkout)
    assert CLAUDE.can_resume(lost, cwd) is False
    place = claude.ground.home / ".claude" / "projects" / "somewhere"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{lost}.jsonl").write_text("")
    made = start(claude, "two", resume_session_id=lost)
    result = made.result()
    assert (result.is_error, result.clear_session, result.attempts) == (False, True, 2)
    assert result.session_id not in (None, lost) and result.output == "The script two is over."
    assert made.kinds().count("result") == 1
    assert CLAUDE.can_resume(str(result.session_id), cwd) is True


@requirement("A-08")
def test_abort_leaves_nothing(claude: ClaudeCode) -> None:
    made = start(claude, "work", claude.shell("exec sleep 300"), mode=YOLO)
    assert_abort_leaves_nothing(made, claude.ground)


@requirement("D-18", "D-22")
def test_a_reader_writes_nothing_and_answers_by_schema(claude: ClaudeCode) -> None:
    """Not even where the user's own settings allow everything, nor by a sub-agent or another worker."""
    settings = claude.ground.home / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    before = settings.read_bytes() if settings.exists() else b"{}"
    settings.write_text(json.dumps({"permissions": {"allow": ["Bash", "Write", "Edit", "mcp__swarm"]}}))
    try:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        claude.models.script("sub", claude.create("c.md", "x"), claude.shell("echo x > d.md"))
        steps = [claude.create("a.md", "x"), claude.shell("echo x > b.md"), *claude.sub_agent("sub")]
        steps += calls((f"{SWARM}whoami", {}), (f"{SWARM}dispatch", {"title": "write it for me"}))
        answer = {"name": "StructuredOutput", "input": {"n": 3}}
        made = start(claude, "read", *steps, answer, mode=READ_ONLY, output_schema=schema)
        result = made.result()
    finally:
        settings.write_bytes(before)
    assert (result.is_error, result.result_json) == (False, {"n": 3})
    assert porcelain(claude.ground) == []
    refused = {end["tool_name"] for end in made.ends() if end["is_error"]}
    assert {"Write", "Bash", f"{SWARM}dispatch"} <= refused and f"{SWARM}whoami" not in refused


@pytest.mark.thorough
@requirement("P-28")
def test_locks_hold_when_nothing_is_asked(claude: ClaudeCode) -> None:
    claude.ground.coordinator.peer_lock("notes.md")
    steps = [claude.replace("notes.md", "line one", "mine"), claude.shell("echo x > free.md")]
    made = start(claude, "dare", *steps, mode=YOLO)
    made.well()
    assert [end["is_error"] for end in made.ends()] == [True, False]
    assert porcelain(claude.ground) == ["?? free.md"]


@pytest.mark.thorough
def test_a_refused_sign_in_ends_the_run_soon(claude: ClaudeCode) -> None:
    """The client would retry for 90 s."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        began = time.monotonic()
        result = start(claude, "no", env={"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}"}).result()
    finally:
        server.shutdown()
        server.server_close()
    assert (result.is_error, result.error_category) == (True, "auth_failed")
    assert time.monotonic() - began < 90


class _Refusing(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        text = b'{"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}'
        self.send_response(401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@requirement("D-10")
def test_every_flag_is_one_of_the_client(claude: ClaudeCode, tmp_path: Path) -> None:
    """Undocumented flags are accepted: the client complains about the invented one only."""
    full = Query(
        "x", str(claude.ground.checkout), system_prompt="s", append_system_prompt="a", model="opus", effort="low",
        additional_directories=(str(tmp_path),), resume_session_id="0b0e7a52-4f0f-4e3b-9a53-1f5b5d1c2a10",
        fork_session=True, output_schema={"type": "object"}, max_cost_usd=1.0, max_turns=1,
    )  # fmt: skip

    def run(*argv: str) -> subprocess.CompletedProcess:
        place = {"env": claude.ground.env, "cwd": claude.ground.checkout, "stdin": subprocess.DEVNULL}
        return subprocess.run(["claude", *argv], **place, capture_output=True, text=True, timeout=60)

    known = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", run("--help").stdout))
    assert "--print" in known
    unlisted = set()
    for mode in ("edit", READ_ONLY, YOLO):
        folder = tmp_path / mode
        folder.mkdir()
        argv = launch(full._replace(mode=mode), folder, "opus").argv[1:]
        unlisted |= {word for word in argv if re.match(r"--?[a-z]", word)} - known
        done = run(*argv, "--no-such-flag")
        assert done.returncode == 1 and done.stderr == "error: unknown option '--no-such-flag'\n", done.stderr
    assert unlisted <= {"--max-turns", "--system-prompt-file", "--append-system-prompt-file"}


def test_a_permission_is_asked_and_text_comes_in_pieces(claude: ClaudeCode) -> None:
    """A command that no rule allows: it runs, or is refused with the words of the caller; without one it is refused."""
    asked: list[PermissionRequest] = []

    async def decide(request: PermissionRequest) -> bool | str:
        asked.append(request)
        return "yes.md" in request.args["command"] or "not on a Friday"

    commands = ['python3 -c \'open("yes.md", "w")\'', 'python3 -c \'open("no.md", "w")\'']
    made = start(claude, "ask", *map(claude.shell, commands), on_permission=decide,
                 stream_text=True)  # fmt: skip
    result = made.well()
    assert [(one.tool_name, one.args["command"]) for one in asked] == [("Bash", command) for command in commands]
    assert porcelain(claude.ground) == ["?? yes.md"]
    first, second = made.ends("Bash")
    assert not first["is_error"] and second["is_error"] and "not on a Friday" in second["result"]
    told = [event for event in made.events if isinstance(event, PermissionAsked)]
    answers = [(True, ""), (False, "not on a Friday")]
    assert [(one.args["command"], (one.is_allowed, one.answer)) for one in told] == list(zip(commands, answers))
    starts, places = (
        [index for index, event in enumerate(made.events) if event.kind == "tool_start"],
        [made.events.index(one) for one in told],
    )
    assert starts[0] < places[0] < starts[1] < places[1]
    pieces = [event.text for event in made.events if isinstance(event, TextDelta)]
    assert "".join(pieces) == result.output == "The script ask is over."
    made = start(claude, "alone", claude.shell(commands[1]))
    made.well()
    (alone,) = [event for event in made.events if isinstance(event, PermissionAsked)]
    assert (alone.tool_name, alone.args["command"], alone.is_allowed) == ("Bash", commands[1], False) and alone.answer
    assert made.ends("Bash")[0]["is_error"] and porcelain(claude.ground) == ["?? yes.md"]


def test_an_image_reaches_the_model(claude: ClaudeCode) -> None:
    (claude.ground.checkout / "dot.png").write_bytes(base64.b64decode(DOT))
    start(claude, "look", images=("dot.png",)).well()
    assert DOT in json.dumps(claude.exchanges("look")[-1].body["messages"])

"""Panes: published, woken, looked at, found, and put right when they have moved. `herdr` is a script here."""

import json
import os
import subprocess
import sys

import pytest
from support.fixtures import BARE_PYTHON, Ground
from support.requirement import requirement
from support.scripted_herdr import Herdr

from swarm_mcp import panes
from swarm_mcp.errors import SwarmError
from swarm_mcp.panes import PaneUnavailable, backend_named
from swarm_mcp.server.tools.instances import WORKSPACE_TOOLS as WORKSPACE_TOOLS
from swarm_mcp.server.tools.messages import TOOLS as MESSAGE_TOOLS
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

TOOL = {tool.name: tool for tool in (*MESSAGE_TOOLS, *WORKSPACE_TOOLS)}


def join(ground: Ground, name: str, label: str = "", pane: str = "", **more) -> dict:
    """A session, in `pane` where one is named."""
    where = {"pane_id": pane, **more} if pane else {}
    return ground.session(name, label or f"claude-code origin:claude-code session:{name}", pane=where)


def nudge(ground: Ground, sender: dict, recipient: dict, **how) -> dict:
    with ground.store() as store:
        return panes.prompt(store, sender, recipient.id, how.pop("message", "please look"), **how)


def published(ground: Ground, row: dict) -> dict:
    with ground.store() as store:
        return store.panes.published(row["id"])


class Caller:
    """A tool's call as the session of `row` makes it."""

    def __init__(self, store, row: dict):
        self.store, self.row = store, row

    def member(self) -> dict:
        return self.row


def hangs(herdr: Herdr, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    """Have herdr hang at this verb, and be given up soon; other verbs have their time on a busy machine."""
    herdr.says(verb, "hang")
    begins = panes.run

    def hurried(argv: list[str], seconds: float, **options):
        return begins(argv, 0.5 if argv[2] == verb else seconds, **options)

    monkeypatch.setattr(panes, "run", hurried)


def call(ground: Ground, row: dict, name: str, **arguments):
    defaults = {key: spec["default"] for key, spec in TOOL[name].properties.items() if "default" in spec}
    with ground.store() as store:
        answer = TOOL[name].call(Caller(store, row), {**defaults, **arguments})
    assert not answer.is_error
    return answer.value


@requirement("P-21")
def test_a_prompt_is_stored_and_wakes_an_idle_pane(ground: Ground, herdr: Herdr, store: Store):
    herdr.pane("w1:p2")
    ann, bob = join(ground, "1"), join(ground, "2", pane="w1:p2")
    assert nudge(ground, ann, bob, task_id="T1") == {
        "message_sent": True, "sender": ann["id"], "recipient": bob["id"], "nudged": True,
        "workspace_backend": "herdr", "workspace_handle": "w1:p2", "handle_kind": "pane", "pane_id": "w1:p2",
        "agent_status": "idle",
    }  # fmt: skip
    get, text, keys = herdr.pane_calls()
    assert (get, text[:2], keys) == (["get", "w1:p2"], ["send-text", "w1:p2"], ["send-keys", "w1:p2", "enter"])
    assert "poll_messages" in text[2] and "T1" in text[2]
    assert [mail["content"] for mail in store.messages.peek(bob)] == ["[task:T1] please look"]


@pytest.mark.parametrize("message", ["; rm -rf ~", "line\nline", "$(id) `id` 'x\" \x1b[2J", "y"])
@pytest.mark.parametrize("task_id", ["", "$(reboot);\n", "1f0c9a52-7f3e"])
@pytest.mark.sampled
def test_nothing_is_typed_that_another_session_wrote(ground: Ground, herdr: Herdr, message: str, task_id: str):
    herdr.pane("w1:p2")
    ann, bob = join(ground, "1"), join(ground, "2", pane="w1:p2")
    assert nudge(ground, ann, bob, message=message, task_id=task_id)["nudged"]
    typed = herdr.pane_calls()[1][2]
    assert typed.isprintable() and not set(typed) & set(";&|$`'\"\\<>(){}*!#~")
    assert typed.startswith("Swarm message from session") and typed.endswith("Call poll_messages to read it.")


@pytest.mark.parametrize(
    ("status", "free"), [("idle", True), ("done", True), ("unknown", True), ("working", False), ("blocked", False)]
)
def test_a_busy_agent_is_left_alone_unless_forced(ground: Ground, herdr: Herdr, status: str, free: bool):
    herdr.pane("w1:p2", status=status)
    ann, bob = join(ground, "1"), join(ground, "2", pane="w1:p2")
    answer = nudge(ground, ann, bob)
    assert (answer["nudged"], answer["agent_status"]) == (free, status)
    if not free:
        assert "force=true" in answer["nudge_skipped"] and [words[0] for words in herdr.pane_calls()] == ["get"]
        assert nudge(ground, ann, bob, force=True)["nudged"]


@pytest.mark.parametrize(
    ("pane", "how", "why"),
    [("w1:p2", {"nudge": False}, "nudge=false"), ("", {}, "no workspace identity is published for that instance")],
)
def test_where_nobody_can_or_shall_be_woken_there_is_just_mail(ground: Ground, herdr: Herdr, pane, how, why):
    herdr.pane("w1:p2")
    ann, bob = join(ground, "1"), join(ground, "2", pane=pane)
    assert nudge(ground, ann, bob, **how) == {
        "message_sent": True, "sender": ann["id"], "recipient": bob["id"], "nudged": False, "nudge_skipped": why,
    }  # fmt: skip
    assert herdr.pane_calls() == []


def test_delivering_to_a_session_that_has_left_says_so(ground: Ground, herdr: Herdr, store: Store):
    ann = join(ground, "1")
    answer = panes.deliver(store, ann, "gone", "x")
    assert answer["message_sent"] and not answer["nudged"] and "not active" in answer["nudge_skipped"]


@pytest.mark.parametrize(
    "agent, more, fits",
    [
        ("claude", {}, True), ("", {}, True), ("some-tool", {}, True), ("codex", {}, False), ("opencode", {}, False),
        ("claude", {"agent_session": {"source": "swarm-mcp:claude-code:SELF", "value": "x"}}, True),
        ("claude", {"agent_session": {"source": "swarm-mcp:claude-code:other", "value": "x"}}, False),
        ("claude", {"agent_session": {"source": "herdr:claude", "value": "x"}}, True),
        ("claude", {"tokens": {"swarm_instance_id": "other"}}, False),
    ],
)  # fmt: skip
@pytest.mark.sampled
def test_a_pane_that_is_somebody_elses_by_now_is_refused(ground: Ground, herdr: Herdr, agent, more, fits):
    ann, bob = join(ground, "1"), join(ground, "2", pane="w1:p2")
    herdr.pane("w1:p2", agent, **json.loads(json.dumps(more).replace("SELF", bob["id"])))
    answer = nudge(ground, ann, bob)
    assert answer["nudged"] is fits and ("nudge_error" in answer) is not fits
    assert len(herdr.pane_calls()) == (3 if fits else 1)
    peeked = call(ground, ann, "peek_peer", recipient=bob["id"])
    assert peeked["peeked"] is fits and ("peek_error" in peeked) is not fits


def test_a_missing_command_fails_nothing(ground: Ground, monkeypatch):
    monkeypatch.setenv("PATH", str(ground.folder))
    ann, bob = join(ground, "1"), join(ground, "2", pane="w1:p2")
    answer = nudge(ground, ann, bob)
    assert not answer["nudged"] and "herdr" in answer["nudge_error"] and answer["pane_id"] == "w1:p2"
    assert "herdr" in call(ground, ann, "resolve_workspace_handle", handle="w1:p2")["probe_error"]


@pytest.mark.parametrize(
    "said", ["", "not json", "[]", "{}", '{"result": 3}', '{"result": {"pane": {"pane_id": 7}}}', "[" * 100000,
             '{"error": {"code": "pane_not_found"}}'],
)  # fmt: skip
def test_a_strange_answer_is_an_error_and_no_crash(ground: Ground, herdr: Herdr, said: str):
    herdr.says("get", said)
    answer = nudge(ground, join(ground, "1"), join(ground, "2", pane="w1:p2"))
    assert not answer["nudged"] and len(answer["nudge_error"]) < 300 and "\n" not in answer["nudge_error"]


@pytest.mark.parametrize("verb", ["send-text", "send-keys"])
def test_a_failure_between_text_and_enter_is_reported(ground: Ground, herdr: Herdr, verb: str, monkeypatch):
    herdr.pane("w1:p2")
    hangs(herdr, monkeypatch, verb)
    answer = nudge(ground, join(ground, "1"), join(ground, "2", pane="w1:p2"))
    assert not answer["nudged"] and f"herdr pane {verb} failed" in answer["nudge_error"]


def test_a_hanging_command_is_ended_in_time_with_its_children(ground: Ground, herdr: Herdr, monkeypatch):
    herdr.pane("w1:p2")
    hangs(herdr, monkeypatch, "get")
    answer = nudge(ground, join(ground, "1"), join(ground, "2", pane="w1:p2"))
    assert "no answer" in answer["nudge_error"]
    left = subprocess.run(["ps", "-eo", "stat=,args="], capture_output=True, text=True, check=True).stdout.splitlines()
    assert not [line for line in left if f"{herdr.folder}/herdr.py" in line and not line.startswith("Z")]


@pytest.mark.parametrize("handle", ["--help", "-x", "a\0b", "a\nb", "\ud800", "x" * 300, "\x1b[2J"])
def test_a_handle_is_one_word_and_no_flag(herdr: Herdr, handle: str):
    for ask in (
        lambda: backend_named("herdr").resolve(handle),
        lambda: backend_named("herdr").read(handle, "recent", 5),
    ):
        with pytest.raises(PaneUnavailable) as error:
            ask()
        assert str(error.value).isprintable()
    with pytest.raises(PaneUnavailable):
        backend_named("herdr").wake(handle, "text")
    assert herdr.pane_calls() == []


def test_the_socket_is_the_published_one_else_the_environments_else_the_profiles(ground, herdr, monkeypatch, home):
    herdr.pane("w1:p2")
    label = "identity:work origin:claude-code"
    ann = join(ground, "1", label)
    bob = join(ground, "2", label, "w1:p2")
    folder = home / ".config" / "swarm-mcp"
    folder.mkdir(parents=True)
    (folder / "work.env").write_text("HERDR_SOCKET_PATH=/profile/sock\n")
    nudge(ground, ann, bob)
    assert herdr.sockets() == {"/profile/sock"}
    monkeypatch.setenv("HERDR_SOCKET_PATH", "/environment/sock")
    nudge(ground, ann, bob)
    assert herdr.sockets() == {"/profile/sock", "/environment/sock"}
    nudge(ground, ann, join(ground, "3", label, "w1:p2", socket_path="/published/sock"))
    assert herdr.sockets() == {"/profile/sock", "/environment/sock", "/published/sock"}


def test_a_pane_that_was_moved_is_found_and_published_anew(ground: Ground, herdr: Herdr):
    herdr.pane("w1:p2")
    ann, bob = join(ground, "1"), join(ground, "2", pane="w1:p2", workspace_id="w1", socket_path="/s")
    herdr.move("w1:p2", "w2:p7")
    answer = nudge(ground, ann, bob)
    assert answer["nudged"] and answer["identity_repaired"] is True
    assert answer["workspace_handle"] == answer["pane_id"] == "w2:p7"
    assert herdr.pane_calls()[1][:2] == ["send-text", "w2:p7"]
    value = published(ground, bob)
    assert (value["handle"], value["pane_id"], value["workspace_id"]) == ("w2:p7", "w2:p7", "w2")
    assert value["handle_aliases"] == value["pane_aliases"] == ["w1:p2"] and value["socket_path"] == "/s"
    assert "identity_repaired" not in nudge(ground, ann, bob)
    herdr.state["moved"]["w1:p2"] = "w3:p1"
    herdr.move("w2:p7", "w3:p1")
    nudge(ground, ann, bob)
    assert published(ground, bob)["handle_aliases"] == ["w1:p2", "w2:p7"]


@pytest.mark.parametrize("key", ["identity/workspace/herdr/", "identity/herdr/"])
def test_a_repair_keeps_what_another_front_end_has_published(key: str, ground: Ground, herdr: Herdr):
    """If the other front end has published a handle alone, its pane has that name."""
    herdr.pane("w1:p2")
    ann, bob = join(ground, "1"), join(ground, "2")
    told = {"backend": "herdr", "handle_kind": "pane", "handle": "w1:p2", "details": {"title": "tests", "row": 3}}
    told = {"pane_id": "w1:p2", "details": told["details"]} if key == "identity/herdr/" else told
    ground.add("kv", scope=ground.scope, key=key + bob["id"], value=json.dumps(told))
    (row,) = [one for one in ground.swarm("instances", "--json").json if one["id"] == bob["id"]]
    assert (row["workspace_handle"], row["pane_id"]) == ("w1:p2", "w1:p2")
    ground.lock(bob, "f")
    (lock,) = ground.swarm("locks", "--json").json
    assert (lock["pane_id"], lock["workspace"]["pane_id"]) == ("w1:p2", "w1:p2")
    herdr.move("w1:p2", "w2:p7")
    (match,) = call(ground, ann, "resolve_workspace_handle", handle="w2:p7")["matches"]
    assert match["identity_repaired"] and (match["schema_version"], match["details"]) == (1, told["details"])
    assert (match["pane_id"], match["handle_aliases"]) == ("w2:p7", ["w1:p2"])
    value = published(ground, bob)
    assert (value["schema_version"], value["details"], value["pane_id"]) == (1, told["details"], "w2:p7")


def test_a_repair_outlives_the_sessions_next_turn(ground: Ground, herdr: Herdr):
    """Hooks name the pane by the environment of the session, and that keeps the first name for ever."""
    herdr.pane("w1:p2")
    ann, bob = join(ground, "1"), join(ground, "2", pane="w1:p2")
    herdr.move("w1:p2", "w2:p7")
    nudge(ground, ann, bob)
    join(ground, "2", pane="w1:p2")
    assert published(ground, bob)["handle"] == "w2:p7"
    join(ground, "2", pane="w5:p5")
    value = published(ground, bob)
    assert value["handle"] == "w5:p5" and "handle_aliases" not in value


def test_registration_publishes_the_environments_pane_where_it_is_another(ground: Ground, store: Store):
    bob = join(ground, "2", pane="w1:p2")
    store.panes.republish(bob, {})
    store.panes.republish(bob, {"HERDR_PANE_ID": "w1:p2"})
    assert ground.sql("SELECT count(*) AS n FROM events WHERE type = 'kv.set'") == [{"n": 1}]
    store.panes.republish(bob, {"HERDR_PANE": "w1:p3", "HERDR_TAB_ID": "w1:t2"}, os.getpid())
    value = published(ground, bob)
    assert (value["handle"], value["tab_id"]) == ("w1:p3", "w1:t2")
    assert ground.sql("SELECT owner_identity FROM kv") == [{"owner_identity": None}]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc: such servers are told on Linux only")
def test_the_environment_of_a_shared_background_server_says_nothing(ground: Ground):
    bob = join(ground, "2")
    waits = [BARE_PYTHON[0], "-c", "import sys; print(flush=True); sys.stdin.read()"]
    server, shared = (
        subprocess.Popen([*waits, word], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for word in ("x", "app-server")
    )
    try:
        assert server.stdout.readline() == shared.stdout.readline() == b"\n", "both are what they are going to be"
        with ground.store() as store:
            store.panes.republish(bob, {"HERDR_PANE_ID": "w1:p2"}, shared.pid)
            assert store.panes.published(bob["id"]) == {}
            store.panes.republish(bob, {"HERDR_PANE_ID": "w1:p2"}, server.pid)
            assert store.panes.published(bob["id"])["handle"] == "w1:p2"
    finally:
        for process in (server, shared):
            process.kill()
            process.communicate()


@pytest.mark.parametrize(
    "value, handle",
    [
        ('{"backend":"herdr","handle_kind":"pane","handle":"p1"}', "p1"), ("{}", ""), ("[]", ""), ("junk", ""),
        ('{"backend":"herdr","handle_kind":"pane","handle":7}', ""), ('{"backend":["x"],"handle":"p"}', ""),
        ('{"backend":"herdr","handle_kind":"pane","handle":"p1","handle_aliases":[1,"p0"],"pane_aliases":7}', "p1"),
    ],
)  # fmt: skip
def test_what_others_have_published_may_be_anything(ground: Ground, herdr: Herdr, value: str, handle: str):
    ann, bob = join(ground, "1"), join(ground, "2")
    ground.add("kv", scope=ground.scope, key=f"identity/workspace/herdr/{bob['id']}", value=value)
    assert published(ground, bob).get("handle", "") == handle
    assert nudge(ground, ann, bob)["nudged"] is False
    known = call(ground, ann, "resolve_workspace_handle", handle="p0")["matches"]
    assert [match["instance_id"] for match in known] == ([bob["id"]] if "p0" in value else [])
    assert ground.swarm("instances", "--json").code == 0


def test_the_older_key_counts_too(ground: Ground, herdr: Herdr):
    herdr.pane("w1:p2")
    ann, bob = join(ground, "1"), join(ground, "2")
    ground.add("kv", scope=ground.scope, key=f"identity/herdr/{bob['id']}", value='{"pane_id":"w1:p2"}')
    assert nudge(ground, ann, bob)["nudged"]


def test_peeking_reads_the_pane_and_sends_nothing(ground: Ground, herdr: Herdr):
    herdr.pane("w1:p2", status="working")
    ann, bob = join(ground, "1"), join(ground, "2", pane="w1:p2")
    answer = call(ground, ann, "peek_peer", recipient=bob["id"], source="visible", lines=5)
    assert answer == {
        "sender": ann["id"], "recipient": bob["id"], "peeked": True, "source": "visible", "lines": 5,
        "text": "visible 5 of w1:p2\n$ \n", "workspace_backend": "herdr", "workspace_handle": "w1:p2",
        "handle_kind": "pane", "pane_id": "w1:p2", "agent_status": "working",
    }  # fmt: skip
    assert [words[0] for words in herdr.pane_calls()] == ["get", "read"]
    assert ground.sql("SELECT * FROM messages") == []


def test_peeking_is_refused_in_words(ground: Ground, herdr: Herdr):
    ann, bob = join(ground, "1", "identity:a"), join(ground, "2", "identity:a")
    eve = join(ground, "3", "identity:b", "w1:p2")
    assert call(ground, ann, "peek_peer", recipient=bob["id"]) == {
        "sender": ann["id"], "recipient": bob["id"], "peeked": False, "source": "recent", "lines": 80,
        "peek_skipped": "no workspace identity is published for that instance",
    }  # fmt: skip
    for recipient in (ann["id"], "nope", eve["id"]):
        assert list(call(ground, ann, "peek_peer", recipient=recipient)) == ["error"]
    assert herdr.pane_calls() == []


def resolved(ground: Ground, row: dict, handle: str, **how) -> tuple:
    answer = call(ground, row, "resolve_workspace_handle", handle=handle, **how)
    return answer["canonical_handle"], answer["instance_id"], answer["ambiguous"], len(answer["matches"])


def test_a_handle_leads_to_its_session(ground: Ground, herdr: Herdr):
    herdr.pane("w1:p2")
    ann, bob = join(ground, "1"), join(ground, "2", pane="w1:p2")
    answer = call(ground, ann, "resolve_workspace_handle", handle="w1:p2")
    assert answer == {
        "backend": "herdr", "handle_kind": "pane", "handle": "w1:p2", "canonical_handle": "w1:p2",
        "instance_id": bob["id"], "ambiguous": False,
        "matches": [
            {"instance_id": bob["id"], "label": bob["label"], "workspace_backend": "herdr", "workspace_handle": "w1:p2",
             "handle_kind": "pane", "pane_id": "w1:p2", "key": f"identity/workspace/herdr/{bob['id']}",
             "schema_version": 1, "backend": "herdr", "handle": "w1:p2"}
        ],
    }  # fmt: skip
    assert resolved(ground, ann, "w1:p9", validate=False) == ("w1:p9", None, False, 0)
    assert len(herdr.pane_calls()) == 1


def test_both_names_of_a_moved_pane_lead_to_its_session(ground: Ground, herdr: Herdr):
    herdr.pane("w1:p2")
    ann, bob = join(ground, "1"), join(ground, "2", pane="w1:p2")
    herdr.move("w1:p2", "w2:p7")
    assert resolved(ground, ann, "w2:p7", validate=False) == ("w2:p7", None, False, 0)
    assert resolved(ground, ann, "w2:p7") == ("w2:p7", bob["id"], False, 1)
    assert published(ground, bob)["handle_aliases"] == ["w1:p2"]
    assert resolved(ground, ann, "w1:p2") == ("w2:p7", bob["id"], False, 1)
    assert resolved(ground, ann, "w1:p2", validate=False) == ("w1:p2", bob["id"], False, 1)


def test_two_sessions_with_one_pane_are_told_apart_by_who_is_there(ground: Ground, herdr: Herdr):
    ann = join(ground, "1")
    first, second = join(ground, "2", pane="w1:p2"), join(ground, "3", "codex origin:codex", "w1:p2")
    assert resolved(ground, ann, "w1:p2", validate=False) == ("w1:p2", None, True, 2)
    herdr.pane("w1:p2", agent="")
    assert resolved(ground, ann, "w1:p2") == ("w1:p2", None, True, 2)
    herdr.pane("w1:p2", agent="codex")
    assert resolved(ground, ann, "w1:p2") == ("w1:p2", second["id"], False, 1)
    herdr.pane("w1:p2", agent_session={"source": f"swarm-mcp:claude-code:{first['id']}"})
    assert resolved(ground, ann, "w1:p2") == ("w1:p2", first["id"], False, 1)


def test_only_sessions_that_one_may_meet_are_found(ground: Ground, herdr: Herdr):
    herdr.pane("w1:p2")
    ann, eve = join(ground, "1", "identity:a"), join(ground, "2", "identity:b", "w1:p2")
    assert resolved(ground, ann, "w1:p2") == ("w1:p2", None, False, 0)
    assert resolved(ground, eve, "w1:p2")[1] == eve["id"]
    gone = ground.session("3", "identity:a", pane={"pane_id": "w1:p4"}, client=(2**22 + 1, "1"))
    assert gone and resolved(ground, ann, "w1:p4", validate=False) == ("w1:p4", None, False, 0)


def test_a_workspace_that_cannot_be_asked_leaves_what_was_published(ground: Ground, herdr: Herdr):
    ann, bob = join(ground, "1"), join(ground, "2", pane="w9:p9")
    answer = call(ground, ann, "resolve_workspace_handle", handle="w9:p9")
    assert answer["instance_id"] == bob["id"] and answer["probe_error"] == "herdr pane get failed: pane w9:p9 not found"


@pytest.mark.parametrize("wrong", [{"backend": "nope"}, {"handle_kind": "window"}, {"handle": "  "}])
def test_an_unknown_backend_or_kind_is_an_error(ground: Ground, herdr: Herdr, wrong: dict):
    ann = join(ground, "1")
    with pytest.raises(SwarmError) as error:
        call(ground, ann, "resolve_workspace_handle", **{"handle": "p", **wrong})
    if "backend" in wrong:
        assert str(error.value).startswith('Unsupported workspace backend "nope"')


def named(session: dict) -> str:
    return f"claude-code {session['id'][:8]}"


def test_prompt_peer(ground: Ground, herdr: Herdr, store: Store):
    herdr.pane("w1:p2")
    ann, bob = join(ground, "1"), join(ground, "2", pane="w1:p2")
    as_ann = ("--as", ann["id"])
    done = ground.swarm("prompt-peer", "--to", bob["id"], "--message", "look", *as_ann)
    assert (done.code, done.out) == (0, f"sent {named(ann)} → {named(bob)} (woken)\n")
    shown = ground.swarm("prompt-peer", bob["id"], "look", "again", "--task", "T1", "--json", *as_ann).json
    assert shown["nudged"] and shown["pane_id"] == "w1:p2"
    done = ground.swarm("prompt-peer", bob["id"], "quietly", "--no-nudge", *as_ann)
    assert done.out.endswith("(nudge=false)\n")
    herdr.pane("w1:p2", status="working")
    assert "force=true" in ground.swarm("prompt-peer", bob["id"], "now", *as_ann).out
    assert ground.swarm("prompt-peer", bob["id"], "now", "--force", "--json", *as_ann).json["nudged"]
    contents = [mail["content"] for mail in store.messages.peek(bob)]
    assert contents == ["look", "[task:T1] look again", "quietly", "now", "now"]


def test_resolve_workspace_handle(ground: Ground, herdr: Herdr):
    herdr.pane("w1:p2")
    bob = join(ground, "2", pane="w1:p2")
    done = ground.swarm("resolve-workspace-handle", "w1:p2")
    assert done.code == 0 and bob["id"] in done.out and done.out.startswith("herdr:w1:p2 ")
    assert ground.swarm("resolve-workspace-handle", "w1:p2", "--json").json["instance_id"] == bob["id"]
    done = ground.swarm("resolve-workspace-handle", "w9:p9")
    assert (done.code, done.err) == (0, "") and len(done.out.splitlines()) == 1
    assert done.out.startswith("herdr:w9:p9 is no session's pane (") and "not found" in done.out
    answer = ground.swarm("resolve-workspace-handle", "w9:p9", "--json")
    assert answer.code == 0 and list(answer.json) == [
        "backend", "handle_kind", "handle", "canonical_handle", "instance_id", "ambiguous", "matches", "probe_error",
    ]  # fmt: skip
    join(ground, "3", pane="w1:p2")
    assert "2 sessions have published herdr:w1:p2" in ground.swarm("resolve-workspace-handle", "w1:p2").out
    for argv in (["x", "--backend", "nope"], ["x", "--kind", "window"], [], ["a", "b"]):
        done = ground.swarm("resolve-workspace-handle", *argv)
        assert (done.code, done.out) == (2 - ("x" in argv), "") and len(done.err.splitlines()) == 1

"""The command line as other programs rely on it: shapes, exit codes, references, and the recorded command lines."""

import json
import os
import subprocess

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support import captures, deviations
from support.captures import Names, Verdict, differences
from support.command_line import FLAGS
from support.files import folder_at
from support.fixtures import SWARM, Done, Ground
from support.requirement import requirement

from swarm_mcp import contributions
from swarm_mcp.cli.arguments import NOUNS, called

pytestmark = pytest.mark.slow


VERBS = contributions.verbs()
ALIASES = contributions.table("ALIASES")

ANY_WORDS = (
    "register",
    "deregister",
    "whoami",
    "instances",
    "lock",
    "unlock",
    "locks",
    "kv",
    "inspect",
    "cleanup",
    "roles",
)


def test_register_answers_with_the_row_and_a_lease_with_its_heartbeat(ground: Ground):
    folder = ground.repo / "sub"
    plain = ground.swarm("register", str(folder), "--label", "  a   b ", "--json").json
    assert list(plain) == ["id", "scope", "directory", "root", "file_root", "pid", "label", "adopted", "lease_until"]
    assert (plain["scope"], plain["root"]) == (ground.scope, ground.scope)
    assert plain["directory"] == plain["file_root"] == str(folder)
    assert (plain["adopted"], plain["lease_until"], plain["label"]) == (True, None, "a b")
    leased = ground.swarm("register", "--lease-seconds", "600", "--json").json
    assert list(leased) == [*plain, "heartbeat"]
    assert (leased["adopted"], leased["lease_until"]) == (False, leased["heartbeat"] + 600)
    assert leased["label"] is None
    text = ground.swarm("register")
    assert text.out.startswith("registered ") and len(text.out.split()[1]) == 36


def test_register_takes_its_directory_from_flag_word_variable_or_here(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    def directory(*argv: str) -> str:
        return ground.swarm("register", *argv, "--json").json["directory"]

    monkeypatch.setenv("SWARM_MCP_DIRECTORY", "/from/variable")
    assert directory("/from/word", "--directory", "/from/flag") == "/from/flag"
    assert directory("/from/word") == "/from/word"
    assert directory() == "/from/variable"
    monkeypatch.delenv("SWARM_MCP_DIRECTORY")
    assert directory() == ground.scope
    assert directory("sub/../other/") == f"{ground.scope}/other"


@requirement("P-18")
def test_scope_comes_from_flag_variable_or_git_root(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    sub = folder_at(ground.repo / "sub")
    assert ground.swarm("instances", cwd=sub).out == f"(no instances in scope {ground.scope})\n"
    monkeypatch.setenv("SWARM_MCP_SCOPE", "  ")
    assert ground.swarm("instances", cwd=sub).out == f"(no instances in scope {ground.scope})\n"
    monkeypatch.setenv("SWARM_MCP_SCOPE", "/else/where")
    assert ground.swarm("instances").out == "(no instances in scope /else/where)\n"
    assert ground.swarm("instances", "--scope", "rel").out == f"(no instances in scope {ground.scope}/rel)\n"


def in_a_pane(ground: Ground) -> dict:
    session = ("--runtime", "claude-code", "--session-id", "s", "--lease-seconds", "600")
    return ground.swarm("register", *session, "--label", "one", "--pane", "p_5", "--json").json


def test_instances_show_panes_but_neither_adoption_nor_lease(ground: Ground):
    row = in_a_pane(ground)
    (shown,) = ground.swarm("instances", "--json").json
    assert list(shown) == [
        "id", "scope", "directory", "root", "file_root", "label", "pid", "registered_at", "heartbeat",
        "workspace_backend", "workspace_handle", "handle_kind", "pane_id",
    ]  # fmt: skip
    assert (shown["id"], shown["pane_id"], shown["workspace_backend"]) == (row["id"], "p_5", "herdr")
    text = ground.swarm("instances").out
    assert f"  {row['id'][:8]}  one {row['id'][:8]}  pid={row['pid']}  " in text and text.endswith("  pane=p_5\n")
    assert ground.swarm("list-instances", "--json").json == [shown]


def test_locks_name_their_owner_and_the_pane_it_published(ground: Ground):
    row = in_a_pane(ground)
    ground.lock(row, "b.py", "because")
    (shown,) = ground.swarm("locks", "--json").json
    assert list(shown)[:7] == ["id", "instance_id", "file", "type", "content", "created_at", "owner_label"]
    assert (shown["file"], shown["type"], shown["content"]) == (f"{ground.scope}/b.py", "lock", "because")
    assert (shown["owner_label"], shown["pane_id"]) == ("one", "p_5")
    assert shown["workspace"]["key"] == f"identity/workspace/herdr/{row['id']}"
    assert shown["workspace"]["handle"] == "p_5"
    assert ground.swarm("locks").out == f"  one {row['id'][:8]} (pane p_5)  b.py  — because\n"


def test_unlock_of_several_frees_what_is_ones_own(ground: Ground):
    me, stranger = ground.session("a", "identity:p one"), ground.session("b", "identity:q secret")
    ground.lock(me, "mine")
    ground.lock(me, "folder/")
    ground.lock(stranger, "theirs")
    done = ground.swarm("unlock", "mine", "theirs", "folder/f", "nobodys", "*.sql", "--as", me["id"], "--json")
    assert done.code == 1 and done.json["unlocked"] == [f"{ground.scope}/mine"]
    words = [one["error"].removeprefix(f"{ground.scope}/") for one in done.json["left"]]
    assert words == [
        "theirs is not yours: held by a session of another identity",
        f"folder/f was not locked by itself: held by this session through {ground.scope}/folder",
        "nobodys was not locked",
        "*.sql was not locked",
    ]
    assert "secret" not in done.out


def test_unlock_names_the_agent_that_holds_it(ground: Ground):
    me = ground.session("a", "one")
    assert ground.swarm("lock", "f", "*.sql", "--agent", "x", "--as", me["id"]).code == 0
    refused = ground.swarm("unlock", "f", "--agent", "y", "--as", me["id"])
    assert refused.code == 1 and "f was not locked by agent y: held by agent x of this session" in refused.err
    assert ground.swarm("unlock", "f", "*.sql", "--as", me["id"]).out.count("unlocked ") == 2


def test_roles_show_what_holds_here(ground: Ground):
    row = ground.session("s", "role:reviewer mode:gateway")
    (ground.repo / ".swarm-role").write_text("# ours\nplanner\n")
    sub = folder_at(ground.repo / "sub")
    current = ground.swarm("roles", "--json", "--as", row["id"], cwd=sub).json["current"]
    assert (current["routing_role"], current["mode"], current["instance_id"]) == ("reviewer", "gateway", row["id"])
    assert "planner" in json.dumps(current["swarm_role_file"])
    assert (current["cwd"], current["scope"]) == (str(sub), ground.scope)
    nobody = ground.swarm("roles", "--json", "--scope", "/else").json["current"]
    assert nobody["instance_id"] is nobody["routing_role"] is None


@pytest.fixture
def named(ground: Ground) -> Ground:
    for instance_id, label in (
        ("aaaa1111-x", "identity:p role:planner session:s1"),
        ("aaaa2222-x", "identity:p role:implementer"),
        ("bbbb3333-x", None),
        ("role:", "odd"),
    ):
        with ground.store():
            pass
        ground.stranger(instance_id, label=label)
    return ground


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("aaaa1111-x", "aaaa1111-x"),
        ("aaaa1", "aaaa1111-x"),
        ("b", "bbbb3333-x"),
        ("role:impl", "aaaa2222-x"),
        ("session:s1", "aaaa1111-x"),
        ("role:", "role:"),  # an exact id beats label words
        ("odd", "role:"),
        ("planner s1", "aaaa1111-x"),  # its name, as tables show it
    ],
)
@requirement("P-20")
def test_a_reference_is_an_id_then_its_beginning_then_part_of_a_label(named: Ground, reference: str, found: str):
    assert named.swarm("whoami", "--as", reference, "--json").json["id"] == found
    assert named.swarm("whoami", f"--as={reference}", "--json").json["id"] == found


@pytest.mark.parametrize("reference", ["aaaa", "identity:p", "ROLE:planner", "zzz", "aaaa1111-xx"])
def test_what_is_ambiguous_or_nobody_is_refused_with_candidates(named: Ground, reference: str):
    done = named.swarm("whoami", "--as", reference, "--json")
    assert done.code == 1 and done.out == "" and done.err.count("\n") == 1
    assert "planner s1 (id aaaa1111)" in done.err


def test_an_empty_reference_counts_as_none_and_the_variable_is_one(named: Ground, monkeypatch: pytest.MonkeyPatch):
    assert named.swarm("whoami", "--as", "").code == 1
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", "role:impl")
    assert named.swarm("whoami", "--as", "", "--json").json["id"] == "aaaa2222-x"
    assert named.swarm("whoami", "--as", "bbbb", "--json").json["id"] == "bbbb3333-x"


def test_the_shell_of_a_session_speaks_for_it(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    mine = ground.session("thread-1", runtime="codex")
    ground.session("thread-12", runtime="codex")
    monkeypatch.setenv("CODEX_THREAD_ID", "thread-1")
    assert ground.swarm("whoami", "--json").json["id"] == mine["id"]
    monkeypatch.setenv("CODEX_THREAD_ID", "thread-")
    assert ground.swarm("whoami").code == 1  # never by a beginning


def test_the_only_session_of_the_scope_needs_no_reference(ground: Ground):
    row = ground.plain()
    assert ground.swarm("whoami").out == f"{row['id']}  session {row['id'][:8]}  scope={ground.scope}\n"


def test_flags_stand_anywhere_and_take_values_either_way(ground: Ground):
    row = ground.session("s", "me")
    assert ground.swarm("lock", "--note", "n o t e", "a", f"--as={row['id']}", "--json").json["ok"]
    assert ground.swarm("lock", "--as", row["id"], "--json", "b", "--note=x=y").json["ok"]
    assert ground.swarm("--json", "lock").code == 2
    assert [(lock["file"][-1], lock["content"]) for lock in ground.swarm("locks", "--json").json] == [
        ("a", "n o t e"), ("b", "x=y"),
    ]  # fmt: skip


def test_after_two_dashes_everything_is_a_word(ground: Ground):
    ground.plain("me")
    assert ground.swarm("lock", "--", "--json").out == f"locked {ground.scope}/--json; there is no such file yet\n"
    assert ground.swarm("kv", "set", "k", "--", "--value").out == "set k\n"
    assert ground.swarm("kv", "get", "k").out == "--value\n"


@pytest.mark.parametrize(
    "argv",
    [
        ["locks", "--nope"], ["locks", "--jsn"], ["lock", "f", "--note"], ["locks", "--json=1"],
        ["lock"], ["lock", ""], ["unlock", "  "], ["kv", "zzz"], ["kv", "get"], ["kv", "set", "k"],
        ["register", "--lease-seconds", "abc"], ["register", "--client", "12"], ["register", "--client", "²:1"],
        ["register", "--runtime", "codex"], ["register", "--session-id", "x"], ["deregister", "--session-id", "x"],
        ["register", "--lease-seconds", "9" * 30],
        ["register", "--runtime", "r", "--session-id", "s", "--client", "9" * 30 + ":1"],
        ["hook"], ["hook", "pre-tool-use"], ["hook", "zzz", "--runtime", "codex"], ["bundle"],
        ["install", "--client", "zzz"], ["loks"], ["nope"], [""],
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_one_line_and_exit_2(ground: Ground, argv: list[str]):
    done = ground.swarm(*argv)
    assert done.code == 2 - (argv[:1] == ["hook"]) and done.out == "" and done.err.count("\n") == 1, done
    assert done.err.startswith("swarm-mcp"), done
    assert not os.path.exists(ground.database) or ground.sql("SELECT count(*) AS n FROM instances")[0]["n"] == 0


@pytest.mark.parametrize("verb", [*VERBS, *ALIASES])
def test_help_of_every_command_has_an_example_and_opens_no_store(ground: Ground, verb: str):
    for argv in ([verb, "--help"], [verb, "word", "-h"], ["help", verb]):
        done = ground.swarm(*argv)
        assert done.code == 0 and done.err == ""
        if verb not in NOUNS:  # it has a page of its own
            assert f"usage: swarm-mcp {called(ALIASES.get(verb, verb))}" in done.out
            assert f"example: swarm-mcp {called(ALIASES.get(verb, verb))}" in done.out
    assert not os.path.exists(os.path.dirname(ground.database))


# A shell can pass any bytes but NUL; those that are not UTF-8 appear as the interpreter decodes them.
RAW = st.binary(max_size=12).map(lambda raw: os.fsdecode(raw.replace(b"\0", b"")))
FLAG = st.sampled_from([flag for flag in FLAGS if flag != "--force"])
WORD = st.one_of(
    RAW, st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8), FLAG,
    st.sampled_from(
        ["list", "get", "set", "append", "del", "--", "-h", "", " ", "0", "-1", "1e9", "9" * 25, "NaN", "[", '"\\ud800"',
         "me", "../../x", "/", "~", "~nobody", ".", "1:1", "a:b", "²:2", "k", '{"a": 1}', "x" * 5000]
    ),
    FLAG.flatmap(lambda flag: RAW.map(lambda value: f"{flag}={value}")),
)  # fmt: skip


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(verb=st.sampled_from(ANY_WORDS), words=st.lists(WORD, max_size=5))
@example(verb="lock", words=["a\udcff"])
@example(verb="whoami", words=["--as", "\udcff"])
@example(verb="kv", words=["append", "k", '"\\ud800"', "--as", "me"])
@example(verb="kv", words=["append", "k", "[" * 100_000, "--as", "me"])
@example(verb="cleanup", words=["--scope", "\udcff"])
@example(verb="kv", words=[""])
@example(verb="register", words=["--lease-seconds", "9" * 25])
@example(verb="register", words=["--client", "²:2", "--runtime", "r", "--session-id", "s"])
def test_no_command_line_at_all_ends_in_a_bug_report(ground: Ground, verb: str, words: list[str]):
    if not os.path.exists(ground.database):
        ground.plain("me")
    done = ground.swarm(verb, *words)
    assert done.code in (0, 1, 2), done
    assert "Traceback" not in done.err and done.err.count("\n") <= 1, done
    missing_key = verb == "kv" and words[:1] == ["get"]  # says it by its exit code alone
    assert bool(done.err) == (done.code > 0) or (missing_key and not done.out), done
    assert done.code == 0 or done.out == "", done
    if words[:1] == ["--json"] and done.code == 0 and not {"--help", "-h"} & set(words):
        json.loads(done.out)


def test_bytes_that_are_no_utf8_survive_a_real_command_line(ground: Ground):
    ground.plain("me")
    name = b"caf\xe9.txt"  # a Latin-1 file name
    done = ground.process("lock", name)
    assert done.code in (0, 1) and "internal error" not in done.err and done.err.count("\n") <= 1, done
    if done.code == 0:
        other = ground.session("t", "other")
        assert ground.process("lock", name, "--as", other["id"]).code == 1


def test_a_folder_that_has_been_deleted_is_no_bug(ground: Ground):
    gone = folder_at(ground.folder / "gone")
    script = f'rmdir "{gone}" && exec "$@"'
    done = subprocess.run(["/bin/sh", "-c", script, "sh", *SWARM, "locks"], cwd=gone, capture_output=True, text=True)
    assert done.returncode in (0, 1) and done.stderr.count("\n") == done.returncode, done
    assert "internal error" not in done.stderr, done


@pytest.mark.parametrize(
    "argv",
    [["locks", "--json"], ["instances"], ["help"], ["--help"], ["lock", "--help"], ["--version"], ["help", "lock"]],
)
def test_a_closed_pipe_is_silent(ground: Ground, argv: list[str]):
    ground.session("s", "me")
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run([*SWARM, *argv], stdout=write, stderr=subprocess.PIPE, cwd=ground.repo, timeout=60)
    finally:
        os.close(write)
    assert done.stderr == b"" and done.returncode in (0, 1, 141), done


RECORD = captures.load("cli")


def of_run(run: dict, done: Done, names: Names) -> list[str]:
    """The differences between a run and the recorded one."""
    found = [] if done.code == run["exit"] else [f"exit: {done.code}, not {run['exit']}"]
    found += differences(run.get("err", ""), done.err, names, "stderr")
    if "json" not in run:
        return found + differences(run.get("out", ""), done.out, names, "stdout")
    try:
        value = json.loads(done.out)
    except ValueError:
        return [*found, f"stdout: no JSON: {done.out}"]
    assert done.out == json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return found + differences(run["json"], value, names)


@requirement("P-26")
def test_every_recorded_run_ends_alike(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWARM_HERDR_BIN", str(ground.folder / "no-herdr"))
    project = ground.folder / "proj"
    (project / ".git").mkdir(parents=True)
    names, verdict = Names(str(ground.folder)), Verdict(deviations.CLI)
    for run in RECORD:
        argv = names.fill(run["argv"])
        if argv[0] == "doctor":
            argv.append("--no-clients")
        with monkeypatch.context() as patch:
            for name, value in run.get("env", {}).items():
                patch.setenv(name, value)
            done = ground.swarm(*argv, cwd=project)
            if run["n"] in deviations.FORCED_RUNS:
                assert done.code == 1
                done = ground.swarm(*argv, deviations.FORCED_RUNS[run["n"]], cwd=project)
        verdict.judge(f"{run['n']} {' '.join(run['argv'])}", of_run(run, done, names))
    assert verdict.alike >= 59
    verdict.deliver()

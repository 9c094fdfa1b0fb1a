"""Promises of a command line: examples that run, errors that help, exit codes that tell success from failure."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.checkouts import ALONE
from support.command_line import FLAGS, flags_of
from support.files import program_at, text_at
from support.fixtures import BARE_PYTHON, FOLDERS, SWARM, Ground, wait_for
from support.screen import read_terminal

from swarm_hook_core.naming import holder_name
from swarm_mcp import contributions
from swarm_mcp.answers.people import known_shortly
from swarm_mcp.cli.arguments import FRONT, GROUPS, NOUNS, called, declared, verb_named, words_of
from swarm_mcp.cli.help_page import page_of
from swarm_mcp.store import Store
from swarm_mcp.store.sessions import Registration

VERBS = contributions.verbs()
OTHER_WORDS = contributions.table("OTHER_WORDS")

pytestmark = pytest.mark.slow

WORDLESS = [verb for verb in VERBS if not any(usage.words for usage in verb_named(verb).usages)]
PERSON = ("-c", "user.name=A", "-c", "user.email=a@b.c")
TASK = "6ff1c928-7a25-430a-b3ff-3033125a34f5"
# As much of Claude Code as it takes to be asked something, and to be looked at.
CLAUDE = """#!/bin/sh
case "$1" in --version) echo "2.1.330 (Claude Code)"; exit 0;; esac
cat >/dev/null
echo '{"type": "system", "subtype": "init", "session_id": "0b9e1c9e-0000-4000-8000-000000000001", "model": "m"}'
echo '{"type": "result", "subtype": "success", "is_error": false, "result": "The first one."}'
"""


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_each_verb(verb: str):
    page, declaration = page_of(verb, 80), verb_named(verb)
    lines, name = page.splitlines(), called(verb)
    assert lines[0].startswith(f"{name}: ") and lines[1] == "" and lines[2].startswith(f"usage: swarm-mcp {name}")
    assert max(map(len, lines)) <= 80
    assert page.count("\nexample: ") == 1 and example_of(verb).startswith(f"swarm-mcp {name}")
    assert declared(verb)[0] == declaration.group in GROUPS
    for usage in declaration.usages:
        for option in usage.options if not usage.hidden else ():
            assert option.form in page_of(verb) or option.hidden
            assert option.about or option.hidden or option.name == "--y"
    words = " ".join(page.split()).replace(" \\ ", " ")
    for room in (40, 60, 100, 200):  # it is wrapped between words at any width
        page = page_of(verb, room)
        longest = max(map(len, re.findall(r'"[^"]*"|\S+', words)))  # quoted words of an example stay one word
        assert max(map(len, page.splitlines())) <= max(room, longest + 12)
        assert " ".join(page.split()).replace(" \\ ", " ") == words


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("words", [("help",), ("help", "--all"), ("--help",)])
@pytest.mark.sampled
def test_the_help_page_has_the_verbs_in_groups_and_fits_a_terminal(ground: Ground, words: tuple, columns: int):
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen([*SWARM, *words], stdout=theirs, env={**os.environ, "COLUMNS": str(columns)})
    os.close(theirs)
    parts = []
    while part := read_terminal(ours):
        parts.append(part)
    os.close(ours)
    assert process.wait(timeout=30) == 0
    lines = re.sub("\x1b\\[[0-9]*m", "", b"".join(parts).decode()).splitlines()
    assert max(map(len, lines)) <= columns
    groups = list({True: GROUPS, False: FRONT}["--all" in words])
    assert [line for line in lines if line in GROUPS] == groups
    names = [re.split("  +", line)[1] for line in lines if line.startswith("  ") and not line.startswith("   ")]
    verbs = [name for name in names if name not in NOUNS]
    assert verbs == [called(verb) for group in groups for verb in VERBS if declared(verb)[0] == group]
    assert len(names) - len(verbs) == len(NOUNS)
    assert verbs[:5] == ["install", "status", "lock", "unlock", "why"]


def test_the_manual_page_has_every_command_with_its_help(ground: Ground):
    text = ground.swarm("help", "--man").out
    assert not [line for line in text.splitlines() if line.startswith("'") or re.match(r"\.(?!TH|SH|SS|nf|fi)", line)]
    shown = text
    for sign, printed in ((r"\(aq", "'"), (r"\(ga", "`"), (r"\-", "-"), (r"\&", ""), (r"\e", "\\")):
        shown = shown.replace(sign, printed)
    for verb in VERBS:
        assert f".SS {called(verb)}\n.nf\n{page_of(verb, 72)}\n.fi" in shown, verb


NAMES = [(noun, word, verb) for noun in NOUNS for word, verb in words_of(noun).items()]


@pytest.mark.parametrize("noun", NOUNS)
@pytest.mark.parametrize("words", ["{}", "{} --help", "{} -h", "help {}"])
def test_the_page_of_a_noun(ground: Ground, noun: str, words: str):
    done = ground.swarm(*words.format(noun).split())
    assert done.code == 0 and done.out.startswith(f"{noun}: "), done
    assert all(f"  {noun} {word} " in done.out for word in words_of(noun))


@pytest.mark.parametrize(("noun", "word", "verb"), NAMES)
def test_a_noun_s_word_is_the_verb(ground: Ground, noun: str, word: str, verb: str):
    page = ground.swarm(noun, word, "--help")
    assert page == ground.swarm(verb, "--help") == ground.swarm("help", noun, word) or verb == "task"
    assert f"usage: swarm-mcp {noun} {word}" in page.out
    by_noun, by_verb = ground.swarm(noun, word, "--nonsense"), ground.swarm(verb, "--nonsense")
    assert by_noun.code == by_verb.code == 2
    assert by_noun.err.replace(f"{noun} {word}", verb) == by_verb.err.replace(f"{noun} {word}", verb)


def test_a_task_s_own_verb_still_takes_its_id(ground: Ground):
    ground.session("s", "one")
    assert "no task" in ground.swarm("task", "beef").err


@pytest.fixture
def town(ground: Ground, home, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """The setting of the examples: a checkout with peers, tasks and files, and this command on PATH."""
    monkeypatch.setenv("PATH", os.pathsep.join([str(ground.folder / "bin"), "/usr/local/bin", "/usr/bin", "/bin"]))
    (ground.folder / "bin").mkdir()
    for name, text in {"swarm-mcp": f'exec {shlex.join(SWARM)} "$@"', "python3": f'exec {BARE_PYTHON[0]} "$@"'}.items():
        program_at(ground.folder / "bin" / name, f"#!/bin/sh\n{text}\n")
    text_at(ground.repo / "src" / "schema.sql", "")
    (ground.repo / "payload.json").write_text('{"tool_name": "Read", "session_id": "x"}')
    me = ground.session("me", "identity:w role:planner mode:gateway")
    ground.session("peer", "identity:w role:reviewer")
    ground.worker = ground.session("worker", "identity:w role:implementer")
    ground.session("0199-5c", "identity:w", runtime="codex")
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", me["id"])
    for task_id, status, assignee in ((TASK, "open", None), ("1f0c9a52", "open", None)):
        ground.add(
            "tasks", id=task_id, scope=ground.scope, type="fix", title="T", requester=me["id"], status=status,
            assignee=assignee, updated_at=int(time.time()), changed_at=int(time.time() * 1000),
        )  # fmt: skip
    ground.me = me
    return ground


def example_of(verb: str) -> str:
    return page_of(verb).rpartition("\nexample: ")[2]


def prepare(town: Ground, verb: str) -> None:
    """Add the preconditions of this one example."""
    if verb == "update-task":
        town.sql("UPDATE tasks SET status = 'in_progress', assignee = ? WHERE id = ?", town.me["id"], TASK)
    elif verb == "answer":
        town.sql("UPDATE tasks SET status = 'in_progress', assignee = ? WHERE id = ?", town.me["id"], TASK)
        with town.store() as store:
            store.questions.ask(store.instances.live(town.me["id"]), TASK, "Which database?")
    elif verb in ("unlock", "transfer", "renew"):
        town.lock(town.me, "src/schema.sql")
        town.sql("UPDATE context SET fence = 41 WHERE type = 'lock'")
    elif verb in ("request-lock", "steal"):
        town.lock(town.worker, "src/schema.sql")
    elif verb == "why":
        town.stranger("41d2")
    elif verb == "hold":
        (town.repo / "Makefile").write_text("migrate:\n\t@swarm-mcp locks --file migrations\n")
    elif verb in ("pause", "resume"):  # a run of the task, supervised by this process
        with town.store() as store:
            spec = {"id": "run", "scope": town.scope, "task_id": TASK, "instance_id": town.worker["id"]}
            state = "paused" if verb == "resume" else "running"
            store.runs.begin({**spec, "harness": "process", "cwd": town.scope, "state": state})
    elif verb in ("run", "harness"):
        program_at(town.folder / "bin" / "claude", CLAUDE)
        text_at(Path.home() / ".claude" / ".credentials.json", "{}")
    elif verb == "logs":
        record = town.folder / "runs" / "4f1c2b7e-x" / "1.jsonl"
        text_at(record, '{"type": "message", "role": "assistant", "content": "Hello."}\n')
        with town.store() as store:
            spec = {"id": "4f1c2b7e-x", "scope": town.scope, "instance_id": "i", "harness": "process"}
            store.runs.begin({**spec, "cwd": town.scope, "record": str(record), "state": "ended"})
    elif verb in ("diff", "blame", "commit", "try"):  # a file with a person's uncommitted line, another new one
        for words in (("init", "-q"), ("add", "src/schema.sql"), (*PERSON, "commit", "-q", "-m", "begin")):
            subprocess.run(["git", *words], cwd=town.repo, check=True)
        (town.repo / "src" / "schema.sql").write_text("alpha\nbeta\n")
        (town.repo / "src" / "parse.py").write_text("import re\n")
    elif verb == "guard":
        subprocess.run(["git", "init", "-q"], cwd=town.repo, check=True)
    elif verb == "install":
        program_at(town.folder / "bin" / "codex", "#!/bin/sh\nexit 0\n")


# The examples of these are in tests of their own: in this file, (loop) where its model is, (poll) in tests/unit/dispatch, (top) at a terminal, (page) in
# tests/unit/page, (demo) in test_readme, or (doctor), with a client, in tests/e2e/test_play.py.
ELSEWHERE = ("demo", "doctor", "dispatch", "watch", "serve", "work", "loop", "poll", "top", "page", "lsp", "acp")


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ELSEWHERE])
@pytest.mark.thorough
def test_the_example_in_the_help_runs(town: Ground, verb: str, monkeypatch: pytest.MonkeyPatch):
    for name, value in ALONE.items():  # git knows the author of a commit, on any machine
        monkeypatch.setenv(name, value)
    if verb == "commit":  # a person's, with a person's changes
        monkeypatch.delenv("SWARM_MCP_INSTANCE_ID")
    if verb in (
        "commit",
        "answer",
        "steal",
        "protect",
        "auto",
        "uninstall",
        "guard",
    ):  # some are reserved for people, at a terminal
        monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")
    prepare(town, verb)
    line = example_of(verb)
    if verb == "install":
        line += " --dry-run"  # tests/e2e installs for real, into real clients
    done = subprocess.run(
        ["/bin/sh", "-c", line], cwd=town.repo, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0 and done.stderr == "", done
    assert done.stdout or verb in ("hook", "alive"), done


def test_the_example_of_dispatch_runs_until_its_task_is_done(town: Ground):
    process = subprocess.Popen(
        ["/bin/sh", "-c", example_of("dispatch")], cwd=town.repo, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        (task,) = wait_for(lambda: town.sql("SELECT id FROM tasks WHERE title LIKE 'Renumber%'"))
        worker = ("--as", town.worker["id"])
        assert town.swarm("claim", task["id"], "--force", *worker).code == 0
        assert process.poll() is None
        assert town.swarm("update-task", task["id"], "--status", "done", "--note", "renumbered", *worker).code == 0
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0 and err == "" and "done" in out, (out, err)


@pytest.mark.usefixtures("usual_signals")
def test_the_example_of_watch_runs_until_it_is_interrupted(town: Ground):
    process = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {example_of('watch')}"], cwd=town.repo, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        seen: list[bytes] = []
        os.set_blocking(process.stdout.fileno(), False)

        def something() -> bool:
            town.swarm("kv", "set", "k", str(time.time()))
            seen.append(process.stdout.read() or b"")
            return any(seen)

        wait_for(something)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) in (0, 130)
        assert process.stderr.read() == b""
    finally:
        process.kill()
        process.communicate()


def test_the_example_of_serve_ends_with_its_input(town: Ground):
    done = subprocess.run(
        ["/bin/sh", "-c", example_of("serve")], cwd=town.repo, stdin=subprocess.DEVNULL, capture_output=True, timeout=60
    )
    assert done.returncode == 0 and done.stdout == b"", done


@pytest.mark.parametrize("verb", WORDLESS)
def test_a_word_too_many_is_named(ground: Ground, verb: str):
    done = ground.swarm(verb, "surplus", "more")
    assert (done.code, done.out) == (2, ""), done
    assert done.err == f"swarm-mcp {verb}: 'surplus' is one word too many; {verb} takes none\n"
    assert not os.path.exists(ground.database)


def test_surplus_words_of_kv_are_ignored_as_ever(ground: Ground):
    ground.plain("me")
    assert ground.swarm("kv", "set", "k", "v", "surplus").code == 0
    assert ground.swarm("kv", "get", "k", "surplus").out == "v\n"
    assert ground.swarm("kv", "list", "surplus").code == 0


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["lokcs"], "did you mean locks?"), (["instnaces"], "did you mean instances?"),
        (["Status"], "did you mean status?"), (["release", "a"], "did you mean unlock?"), (["recover"], "did you mean restore?"),
        (["list"], "did you mean locks?"), (["mute"], "did you mean protect off --for 1h?"), (["annotate"], "did you mean blame?"),
        (["silence"], "did you mean protect off --for 1h?"), (["freeze"], "did you mean lock?"), (["tui"], "did you mean top?"), (["disable"], "did you mean protect off?"), (["inbox"], "did you mean msg list?"),
        (["msg", "snd"], "did you mean send?"), (["worker", "x"], "choose from dispatch, poll, run"),
        (["request_task"], "did you mean task request?"), (["relase"], "did you mean unlock?"), (["help", "lokc"], "did you mean lock?"),
        (["locks", "--jsn"], "did you mean --json?"), (["lock", "f", "--notes=x"], "did you mean --note?"),
        (["kv", "lst"], "did you mean list?"), (["completion", "bsh"], "did you mean bash?"),
        (["--json", "locks"], "put flags after it: swarm-mcp locks ... --json"),
        (["ui", "lits"], "did you mean list?"), (["hook", "turns", "--runtime", "codex"], "did you mean turn?"),
        (["hook", "subagent", "--runtime", "pi"], "pi has no such hook"),
        (["tasks", "--status", "opne"], "open"), (["update-task", "x", "--status", "dne"], "done"),
    ],
)  # fmt: skip
def test_a_typo_is_answered_in_one_line_with_what_was_meant(ground: Ground, argv: list[str], hint: str):
    done = ground.swarm(*argv)
    code = 2 - (argv[0] == "hook")  # clients take a hook's 2 for a denial
    assert (done.code, done.out) == (code, "") and done.err.count("\n") == 1 and hint in done.err, done
    assert not os.path.exists(ground.database)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.sampled
def test_a_verb_takes_its_own_flags_and_no_others(ground: Ground, verb: str):
    own = flags_of(verb)
    wrong = [("--nosuchflag", "Unknown flag: --nosuchflag"), ("--=", "Unknown flag: --")]
    wrong += [(flag, f"Unknown flag: {flag}") for flag in FLAGS if flag not in own and flag.startswith("--")]
    wrong += [(flag, f"{flag} wants a value") for flag, takes_value in own.items() if takes_value]
    wrong += [
        (f"{flag}=yes", f"{flag} takes no value") for flag, value in own.items() if not value and flag != "--help"
    ]
    for flag, said in wrong:
        done = ground.swarm(verb, flag)
        assert (done.code, done.out) == (2 - (verb == "hook"), ""), done
        assert done.err.startswith(f"swarm-mcp {verb}: {said}"), done
        assert done.err.count("\n") == 1
    assert not os.path.exists(ground.database)


@pytest.mark.parametrize(
    "argv",
    [["messages", "--limit", "many"], ["tasks", "--status", ""], ["request-task", "fix", "t", "--priority", "1.5"],
     ["register", "--lease-seconds", "1e3"], ["dispatch", "t", "--wait", "soon"],
     ["ui", "move", "--target", "n", "--x", "nan", "--y", "0"]],
)  # fmt: skip
def test_numbers_are_numbers(ground: Ground, argv: list[str]):
    ground.plain("identity:w mode:gateway")
    done = ground.swarm(*argv)
    if argv[0] == "tasks":  # nothing was asked
        assert done.code == 0
    else:
        assert (done.code, done.out) == (2, "") and done.err.count("\n") == 1 and argv[-1] in done.err + "0", done


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("try", 2, "missing the command: swarm-mcp try -- COMMAND ..."), ("try --nope -- true", 2, "Unknown flag: --nope"),
        ("try --session nobody -- true", 1, "no session of this scope has 'nobody'"),
        ("statusline extra", 2, "'extra' is one word too many"), ("statusline --scope", 2, "--scope wants a value"),
        ("uninstall --purge --json", 2, "--purge goes without --client and --json"),
        ("uninstall --purge --client codex", 2, "--purge goes without --client and --json"),
        ("uninstall --yes", 2, "--yes answers the question of --purge; there is no other one"),
        ("install --statusline --no-statusline", 2, "either --statusline or --no-statusline"),
        ("watch --notify extra", 2, "'extra' is one word too many"), ("watch --notify=1", 2, "--notify takes no value"),
        ("protect keep --unset", 2, "either a level or --unset"),
        ("undo --session", 2, "--session wants a value"), ("undo --session nobody", 1, "no session of this scope"),
        ("undo --session me none.py", 1, "none.py is not there, and nothing of it can be taken back"),
        ("undo --session me none.py --dry-run", 1, "none.py is not there, and nothing of it can be taken back"),
        ("undo --undo nope", 1, "no undo here is called 'nope'"), ("undo --person", 2, "--person wants each FILE"),
        ("undo --session me --since soon", 2, "--since wants a time of day"),
        ("undo --person --turn", 2, "--person and --turn exclude each other"),
        ("restore", 2, "missing the file to restore"), ("restore f.txt --id", 2, "--id wants a value"),
        ("restore none.py", 1, "no earlier content of "), ("restore f.txt 47bcd26b", 2, "one word too many"),
        ("restore f.txt --list --id 47bcd26b", 2, "--list and --id exclude each other"),
        ("lock --name", 2, "missing the file to lock"), ("lock --name a/b", 1, "a name has 1 to 200 characters"),
        ("lock --name x --pattern *.sql", 2, "--name excludes --pattern"), ("unlock --name none", 1, "was not locked"),
        ("hold --name x --", 2, "missing the command"), ("hold -- true", 2, "missing the path to hold"),
        ("hold --name a/b -- true", 1, "a name has 1 to 200 characters"),
        ("hold --name x -- no-such-program", 127, "no-such-program: No such file or directory"),
        ("blame f.txt:0", 2, "lines count from 1"), ("blame f.txt:3-1", 2, "the first one stands first"),
        ("blame f.txt:9", 1, "has no line 9: it has 1"), ("blame f.txt:x", 1, "f.txt:x is no file"),
        ("diff none.py", 1, "none.py is not there, and has no uncommitted change"),
        ("commit -m m none.py", 1, "nothing of yours to commit"),
    ],
)  # fmt: skip
def test_a_slip_is_one_line_with_its_exit_code(ground: Ground, line: str, code: int, said: str) -> None:
    ground.plain("me")
    Path(ground.repo, "f.txt").write_text("one\n")
    for words in ("init -q", "add .", "-c user.name=me -c user.email=me@example.com commit -qm first"):
        subprocess.run(["git", *words.split()], cwd=ground.repo, check=True)
    done = ground.swarm(*line.split())
    verb, (*about, last) = line.split()[0], done.err.splitlines()
    assert (done.code, done.out) == (code, "") and said in last and len(about) <= line.startswith("try"), done
    assert last.startswith((f"swarm-mcp {verb}: ", f"{verb} failed: ")) and f"{verb}: {verb}: " not in last


def test_a_refusal_is_an_error_to_machines_too(ground: Ground):
    one, two = ground.session("a", "one"), ground.session("b", "two")
    ground.lock(one, "f")
    ground.add("tasks", id="t", scope=ground.scope, type="fix", title="T", requester=one["id"], status="done")
    for argv in (["lock", "f"], ["claim", "t"], ["claim", "nope"], ["update-task", "t", "--status", "done"]):
        done = ground.swarm(*argv, "--as", two["id"], "--json")
        assert (done.code, done.err) == (1, "") and isinstance(done.json["error"], str), (argv, done)
        text = ground.swarm(*argv, "--as", two["id"])
        assert (text.code, text.out) == (1, "") and text.err.startswith(f"{argv[0]} failed: "), (argv, text)
        assert text.err.count("\n") == 1


@pytest.mark.parametrize("argv", [["kv", "get", "nope"], ["ui", "get", "77"]])
def test_what_is_not_there_is_null_to_machines_and_exit_1_to_people(ground: Ground, argv: list[str]):
    assert ground.swarm(*argv, "--json") == (0, "null\n", "")
    assert ground.swarm(*argv) == (1, "", "")


@pytest.mark.usefixtures("usual_signals")
def test_an_interrupt_of_a_real_process_is_130_and_silent(ground: Ground):
    with ground.store():
        pass

    def queued() -> list:
        return ground.sql("SELECT 1 FROM ui_commands")

    process = subprocess.Popen(
        [*SWARM, "ui", "organize", "--wait", "60"], cwd=ground.repo, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        wait_for(queued)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (130, b"", b"")


def test_the_package_runs_as_a_module(ground: Ground):
    program = [*BARE_PYTHON, "-c", f"import sys, runpy; sys.path[:0] = {FOLDERS!r}; sys.argv[0] = 'swarm-mcp';"
               " runpy.run_module('swarm_mcp', run_name='__main__', alter_sys=True)"]  # fmt: skip
    assert ground.process("instances", program=program).out == f"(no instances in scope {ground.scope})\n"
    assert ground.process("lokcs", program=program).code == 2
    real = subprocess.run(
        [sys.executable, "-m", "swarm_mcp", "--version"], capture_output=True, cwd=FOLDERS[0], timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(FOLDERS)},
    )  # fmt: skip
    assert real.returncode == 0 and real.stdout.startswith(b"swarm-mcp "), real


def test_host_is_another_name_for_client_and_skills_come_with_the_plugin(town: Ground):
    prepare(town, "install")
    by_client = town.swarm("install", "--client", "codex", "--dry-run", "--json")
    by_host = town.swarm("install", "--host", "codex", "--dry-run", "--json")
    assert by_client.code == 0 and by_client == by_host
    for flag in ("--no-skill", "--no-skills"):
        done = town.swarm("install", "--host=codex", flag, "--dry-run", "--json")
        assert done.json == by_host.json and "plugin carries the skills" in done.err and done.err.count("\n") == 1
    assert "unknown client 'emacs'" in town.swarm("install", "--host", "codex,emacs").err
    assert town.swarm("uninstall", "--host", "codex", "--dry-run").out == "would take the plugin out of Codex\n"


def test_other_words_mean_commands_that_there_are():
    assert {verb.split()[0] for verb in OTHER_WORDS.values()} <= set(VERBS) and not set(OTHER_WORDS) & set(VERBS)


@pytest.mark.parametrize("words", [["install"], ["guard", "install"], ["lock", "a"]])
def test_a_home_that_takes_nothing_is_no_error_of_ours(ground: Ground, words: list[str], monkeypatch):
    """A file stands in place of the folders: not even root can make them."""
    closed = text_at(ground.folder / "closed", "")
    for name in ("XDG_DATA_HOME", "SWARM_STATE_DIR", "SWARM_DB_PATH"):
        monkeypatch.setenv(name, str(closed / "x"))
    program_at(ground.folder / "bin" / "grok", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{ground.folder / 'bin'}:{os.environ['PATH']}")
    done = ground.swarm(*words)
    assert (done.code == 1 and str(closed) in done.err and done.err.count("\n") == 1) or words[0] == "guard", done
    assert "internal error" not in done.err, done
    found = {check["name"]: check for check in ground.swarm("doctor", "--no-clients", "--json").json["checks"]}
    assert found["state"]["status"] == "fail" and str(closed) in found["state"]["message"]
    assert set(found["state"]["details"]["closed"]) == {"store", "plugin"} and "\n" not in found["state"]["message"]


def test_a_session_is_named_in_every_way_in_which_texts_of_ours_have_it(ground: Ground, store: Store):
    """The forms of a denial, a table and a request for more: whole and copied as they stand; and the client's own id."""
    session_id = "5f0c2f61-1111-4222-8333-444455556661"
    me = ground.session("me", "me")
    given = Registration(str(ground.repo), label="claude-code session:5f0c2f61", runtime="claude-code",
                         session_id=session_id)  # fmt: skip
    peer = store.instances.register(given)
    name = holder_name(peer.label, peer.id)
    for reference in (peer.id, f"instance {peer.id}", f"(instance {peer.id})", name, f"{name} (instance {peer.id})",
                      known_shortly(peer), session_id, peer.id[:8]):  # fmt: skip
        done = ground.swarm("send", "hello", "--to", reference, "--as", me["id"])
        assert done.code == 0 and name in done.out, (reference, done)

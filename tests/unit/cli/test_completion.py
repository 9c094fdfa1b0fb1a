"""Completion, as shells ask for it: the candidates, the speed, and good behaviour on errors."""

import os
import shlex
import shutil
import subprocess
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.command_line import FLAGS
from support.files import folder_at, program_at
from support.fixtures import BARE_PYTHON, FOLDERS, SWARM, Ground

from swarm_mcp import contributions
from swarm_mcp.cli.arguments import NOUNS
from swarm_mcp.cli.commands.completion import SCRIPTS, candidates
from swarm_mcp.domain import STATUSES, TYPES
from swarm_mcp.store import BUSY_SECONDS

VERBS = contributions.verbs()

pytestmark = pytest.mark.slow


@pytest.fixture
def scene(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """Two sessions, tasks in several states, keys and files; this process stands in the checkout."""
    one = ground.session("s1", "identity:w role:planner")
    ground.session("s2", "identity:w role:reviewer team:a/b")
    for number, status in enumerate(("open", "claimed", "in_progress", "done")):
        ground.add(
            "tasks", id=f"{number}aaa-task", scope=ground.scope, type="fix", title=f"T {status}", status=status,
            requester=one["id"], updated_at=int(time.time()),
        )  # fmt: skip
    with ground.store() as store:
        store.kv.put(one, "plan/latest", "x")
        store.kv.put(one, "progress", "x")
    (ground.repo / "my file.txt").write_text("")
    (ground.repo / "folder").mkdir()
    monkeypatch.chdir(ground.repo)
    return ground


def offered(*words: str) -> list[str]:
    return [candidate.word for candidate in candidates(list(words))]


def test_verbs_come_first_each_with_what_it_does(ground: Ground):
    assert offered("") == offered("help", "")
    assert {*NOUNS, "lock", "diff", "guard"} < {*offered("")} and "request-task" not in offered("")
    assert offered("lo") == ["lock", "log"] and offered("zzz") == []
    assert all(candidate.about for candidate in candidates([""]))
    assert offered("--v") == ["--version"]


def test_flags_are_those_of_the_verb(scene: Ground):
    assert set(offered("lock", "--")) >= {"--note", "--exclusive", "--task", "--as", "--json", "--help"}
    assert "--label" not in offered("lock", "--")
    assert "--exclusive" not in offered("locks", "--")
    assert offered("lock", "--json", "--js") == []  # once is enough
    assert "--lease-seconds" in offered("register", "--") and "--patience" not in offered("register", "--")
    assert "--prefix" in offered("kv", "list", "--") and "--prefix" not in offered("kv", "get", "--")
    assert "--json" in offered("locks", "")  # there are no words to offer
    assert offered("lock", "--", "--") == [":files"]


def test_every_verb_that_answers_offers_json():
    silent = ("serve", "completion", "hook", "work", "top", "lsp", "acp")
    assert all("--json" in offered(verb, "--") for verb in VERBS if verb not in silent)


def test_sub_commands_and_choices(scene: Ground):
    assert offered("kv", "") == ["list", "get", "set", "append", "del"]
    assert offered("completion", "") == list(SCRIPTS)
    assert offered("msg", "") == ["list", "send", "all", "wake"] and offered("msg", "send", "--t") == ["--to"]
    assert offered("task", "cl") == ["claim"]
    assert set(offered("ui", "")) >= {"list", "get", "spawn", "prompt", "move", "organize"}
    assert offered("hook", "t") == ["turn"]
    assert offered("hook", "turn", "--runtime", "")[:2] == ["claude-code", "codex"]
    assert offered("install", "--client", "co") == ["codex", "copilot"]
    assert offered("install", "--client=co") == ["--client=codex", "--client=copilot"]
    assert offered("request-task", "--type", "") == offered("request-task", "")[: len(TYPES)] == list(TYPES)
    assert set(offered("tasks", "--status", "")) == set(STATUSES) and "running" in offered("ui", "list", "--status", "")
    assert "done" in offered("update-task", "0aaa-task", "--status", "")


@pytest.mark.parametrize("flag", ["--as", "--to", "--from", "--assignee"])
def test_sessions_by_id_and_by_what_only_one_label_has(scene: Ground, flag: str):
    ids = [row["id"][:8] for row in scene.sql("SELECT id FROM instances ORDER BY registered_at, id")]
    verb = {"--to": "send", "--from": "messages", "--assignee": "request-task"}.get(flag, "lock")
    found = offered(verb, flag, "")
    assert set(found) == {*ids, "role:planner", "role:reviewer", "team:a/b"}
    assert offered(verb, flag, "role:p") == ["role:planner"]
    assert offered(verb, f"{flag}=role:p") == [f"{flag}=role:planner"]
    assert all(scene.swarm("whoami", "--as", word).code == 0 for word in found)


def test_tasks_that_the_verb_has_a_use_for(scene: Ground):
    assert offered("claim", "") == ["0aaa-task", "1aaa-task"]
    assert offered("update-task", "") == ["0aaa-task", "1aaa-task", "2aaa-task"]
    assert len(offered("lock", "f", "--task", "")) == 4
    assert candidates(["claim", "0"])[0].about == "[open] T open"


def test_keys_files_and_folders(scene: Ground):
    assert offered("kv", "get", "p") == ["plan/latest", "progress"]
    assert offered("kv", "del", "pl") == ["plan/latest"]
    assert offered("lock", "") == offered("unlock", "s") == offered("lock", "one", "") == [":files"]
    assert offered("hold", "one", "--", "ma") == offered("hold", "one", "--", "make", "al") == [":files"]
    assert "--to" in offered("transfer", "one", "")  # just one file
    assert offered("bundle", "") == offered("locks", "--scope", "") == offered("locks", "--scope=") == [":folders"]


def test_another_scope_is_looked_into_where_it_is_named(scene: Ground):
    elsewhere = scene.folder / "elsewhere"
    scene.stranger("dddd-elsewhere", directory=str(elsewhere), label="role:far")
    assert "role:far" not in offered("whoami", "--as", "")
    assert "role:far" in offered("whoami", "--scope", str(elsewhere), "--as", "")
    assert "role:far" in offered("whoami", f"--scope={elsewhere}", "--as", "")


def test_names_that_a_shell_would_act_on_are_never_offered(scene: Ground):
    evil = "a:$(touch x) b:`id` c:;rm d:' e:\" f:* g:\\ h:|x i:& j:>x k:~ l:!x m:\x1b[2J"
    scene.stranger("$(touch pwned)", label=evil)
    scene.add("kv", scope=scene.scope, key="$(touch pwned)", value="1")
    scene.add("tasks", id="`x`", scope=scene.scope, type="fix", title="\x1b[2J\nx", requester="x", status="open")
    scene.add("tasks", id="9", scope=scene.scope, type="fix", title="\x1b[2J\nx", requester="x", status="open")
    for words in (["whoami", "--as", ""], ["kv", "get", ""], ["claim", ""]):
        for word in offered(*words):
            assert shlex.quote(word) == word or set(word) <= set(":,+=@%./-_") | set(map(chr, range(48, 123))), word
            assert not set(word) & set("$`;'\"*\\|&>~!\x1b <()")
    assert "9\t[open] \\e[2J\\nx\n" in scene.swarm("completion", "words", "--", "claim", "").out


def test_another_identity_has_no_name_and_no_keys(scene: Ground, monkeypatch: pytest.MonkeyPatch):
    scene.add("kv", scope=scene.scope, key="plan/theirs", value="1", owner_identity="identity:nobody-here")
    monkeypatch.setenv("AGENT_IDENTITY", "other")
    assert "role:planner" not in offered("whoami", "--as", "")
    assert "plan/theirs" not in offered("kv", "get", "plan/")
    monkeypatch.setenv("AGENT_IDENTITY", "nobody-here")
    assert "plan/theirs" in offered("kv", "get", "plan/")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from([*VERBS, *FLAGS, "", "--", "-", "=", "--=", "--as=", "words", "x", "[("]) | st.text(max_size=5),
        max_size=5,
    )
)
def test_whatever_is_asked_the_answer_is_silent_and_done(scene: Ground, words: list[str]):
    if any("\0" in word for word in words):
        return
    done = scene.swarm("completion", "words", "--", *words)
    assert done.code == 0 and done.err == ""


@pytest.mark.parametrize("damage", ["absent", "garbage", "newer", "folder"])
def test_a_store_that_cannot_be_read_offers_nothing_and_says_nothing(ground: Ground, damage: str):
    os.makedirs(os.path.dirname(ground.database))
    if damage == "garbage":
        with open(ground.database, "wb") as file:
            file.write(b"no database" * 1000)
    elif damage == "newer":
        with ground.store():
            pass
        ground.sql("PRAGMA user_version = 99")
    elif damage == "folder":
        os.mkdir(ground.database)
    assert ground.process("completion", "words", "--", "whoami", "--as", "") == (0, "", "")
    assert damage != "absent" or not os.path.exists(ground.database)


def test_a_busy_store_is_not_waited_for(scene: Ground):
    with scene.store() as store, store.database.writing():
        began = time.monotonic()
        assert scene.swarm("completion", "words", "--", "claim", "").code == 0
        assert time.monotonic() - began < BUSY_SECONDS


@pytest.fixture
def shell(scene: Ground, monkeypatch: pytest.MonkeyPatch):
    """Run text in a shell with the `swarm-mcp` under test; return its output by lines."""
    bin_folder = folder_at(scene.folder / "bin")
    program_at(bin_folder / "swarm-mcp", f'#!/bin/sh\nexec {shlex.join(SWARM)} "$@"\n')
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")

    def run(*argv: str) -> list[str]:
        done = subprocess.run(
            argv, capture_output=True, text=True, cwd=scene.repo, timeout=60, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0 and done.stderr == "", done
        return done.stdout.splitlines()

    return run


def in_bash(shell, line: str, words: list[str]) -> list[str]:
    """The words that bash would insert for the last of `words`, split from `line` as bash does."""
    state = f"COMP_LINE={shlex.quote(line)}; COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}"
    text = f"source <(swarm-mcp completion bash); {state}; _swarm_mcp; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    return [line for line in shell("bash", "--norc", "--noprofile", "-c", text) if line]


def test_bash(shell):
    assert in_bash(shell, "swarm-mcp lo", ["swarm-mcp", "lo"]) == ["lock", "log"]
    assert in_bash(shell, "swarm-mcp task claim ", ["swarm-mcp", "task", "claim", ""]) == ["0aaa-task", "1aaa-task"]
    assert in_bash(shell, "swarm-mcp kv g", ["swarm-mcp", "kv", "g"]) == ["get"]
    assert "my file.txt" in in_bash(shell, "swarm-mcp lock ", ["swarm-mcp", "lock", ""])
    assert in_bash(shell, "swarm-mcp lock m", ["swarm-mcp", "lock", "m"]) == ["my file.txt"]
    assert in_bash(shell, "swarm-mcp bundle f", ["swarm-mcp", "bundle", "f"]) == ["folder"]


def test_bash_splits_words_at_equals_and_colons(shell):
    line = ["swarm-mcp", "whoami", "--as"]
    assert in_bash(shell, "swarm-mcp whoami --as role:p", [*line, "role", ":", "p"]) == ["planner"]
    assert in_bash(shell, "swarm-mcp whoami --as=role:p", [*line, "=", "role", ":", "p"]) == ["planner"]
    assert in_bash(shell, "swarm-mcp whoami --as=ro", [*line, "=", "ro"]) == ["role:planner", "role:reviewer"]
    assert in_bash(shell, "swarm-mcp locks --scope=f", ["swarm-mcp", "locks", "--scope", "=", "f"]) == ["folder"]
    assert in_bash(shell, "swarm-mcp whoami --as  role:p", [*line, "role", ":", "p"]) == ["planner"]


ZSH = shutil.which(os.environ.get("SWARM_TEST_ZSH", "zsh"))
FISH = shutil.which(os.environ.get("SWARM_TEST_FISH", "fish"))
FISH_FUNCTIONS = os.environ.get("SWARM_TEST_FISH_FUNCTIONS", "")  # where fish is not installed but unpacked


@pytest.mark.skipif(not ZSH, reason="needs zsh on PATH, or named by SWARM_TEST_ZSH (apt-get install zsh)")
def test_zsh(shell):
    def asked(*words: str) -> list[str]:
        # Stand-ins for zsh's completion widgets, which exist only during completion.
        stand_ins = 'compdef() { }; compset() { }; _files() { print -r -- "files $*" }; '
        stand_ins += "compadd() { print -rl -- $found }"
        state = f"words=({shlex.join(words)}); CURRENT={len(words)}"
        return shell(ZSH, "-f", "-c", f"{stand_ins}; source <(swarm-mcp completion zsh); {state}; _swarm_mcp; true")

    assert asked("swarm-mcp", "lo") == ["lock", "locks"]
    assert asked("swarm-mcp", "claim", "") == ["0aaa-task", "1aaa-task"]
    assert asked("swarm-mcp", "whoami", "--as", "role:p") == ["role:planner"]
    assert asked("swarm-mcp", "whoami", "--as=role:p") == ["--as=role:planner"]
    assert asked("swarm-mcp", "lock", "") == ["files "]
    assert asked("swarm-mcp", "bundle", "") == ["files -/"]


@pytest.mark.skipif(not FISH, reason="needs fish on PATH, or named by SWARM_TEST_FISH (apt-get install fish)")
def test_fish(shell):
    def asked(line: str) -> list[str]:
        place = f"set fish_function_path {FISH_FUNCTIONS}; " if FISH_FUNCTIONS else ""
        text = f"{place}swarm-mcp completion fish | source; complete -C {shlex.quote(line)}"
        return [line.partition("\t")[0] for line in shell(FISH, "--no-config", "-c", text)]

    assert asked("swarm-mcp lo") == ["lock", "log"]
    assert asked("swarm-mcp task claim ") == ["0aaa-task", "1aaa-task"]
    assert asked("swarm-mcp whoami --as role:p") == ["role:planner"]
    assert asked("swarm-mcp whoami --as=role:p") == ["--as=role:planner"]
    assert asked("swarm-mcp lock m") == ["my file.txt"]
    assert asked("swarm-mcp bundle f") == ["folder/"]


def test_what_it_loads_stays_small(scene: Ground):
    code = (
        f"import sys; sys.path[:0] = {FOLDERS!r}; from swarm_mcp.cli.main import main; code = main(sys.argv[1:]);"
        " print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    argv = ["completion", "words", "--", "lock", "--"]
    loaded = set(scene.process(*argv, program=[*BARE_PYTHON, "-c", code]).err.split())
    assert "swarm_mcp.cli.commands.completion" in loaded
    assert not loaded & {
        "mcp",
        "subprocess",
        "jsonschema",
        "sqlite_utils",
        "swarm_mcp.cli.commands.install",
        "argparse",
    }

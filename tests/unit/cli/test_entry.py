"""The entry of the command, the declaration of its verbs, and the additions of packages and contributors."""

import json
import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest
from support.files import folder_at, text_at
from support.fixtures import BARE_PYTHON, FOLDERS, SWARM, Done, Ground

import swarm_mcp
from swarm_hook_core.state import state_dir
from swarm_mcp import contributions
from swarm_mcp.cli.arguments import JSON, Option, Usage, Word, choice, parse
from swarm_mcp.cli.commands import locks
from swarm_mcp.doctor import own_checks
from swarm_mcp.errors import UsageError
from swarm_mcp.server import tool
from swarm_mcp.server.tools import all_tools

HEAVY = (
    "argparse",
    "jsonschema",
    "sqlite_utils",
    "uuid",
    "subprocess",
    "difflib",
    "platformdirs",
    "mcp",
)


def test_a_bug_exits_3_with_a_report_and_one_line(ground: Ground, failing):
    failing(locks.locks, "run", ZeroDivisionError("two\nlines"))
    done = ground.swarm("locks")
    assert (done.code, done.out) == (3, "")
    assert done.err.count("\n") == 1 and "ZeroDivisionError: two lines" in done.err
    (report,) = Path(state_dir(), "crashes").iterdir()
    assert str(report) in done.err
    assert ", in fails\n" in report.read_text() and report.stat().st_mode & 0o077 == 0


def test_a_bug_without_room_for_a_report_is_still_one_line(ground: Ground, failing):
    text_at(Path(state_dir()), "in the way")
    failing(locks.locks, "run", ZeroDivisionError("x"))
    done = ground.swarm("locks")
    assert done.code == 3 and done.err.count("\n") == 1 and "Traceback" not in done.err


@pytest.mark.parametrize("word", ["--version", "-V", "version"])
def test_version(ground: Ground, word: str):
    assert ground.swarm(word) == (0, f"swarm-mcp {swarm_mcp.__version__}\n", "")


def loaded_by(ground: Ground, argv: list[str]) -> tuple[Done, set[str]]:
    """Return the end of a command, and the modules that it has loaded."""
    code = (
        f"import sys; sys.path[:0] = {FOLDERS!r}; from swarm_mcp.cli.main import main; code = main(sys.argv[1:]);"
        " print(sorted(sys.modules), file=sys.stderr); sys.exit(code)"
    )
    done = ground.process(*argv, program=[*BARE_PYTHON, "-c", code])
    return done, set(eval(done.err))


def test_the_version_loads_next_to_nothing(ground: Ground):
    done, loaded = loaded_by(ground, ["--version"])
    assert done.out.startswith("swarm-mcp ")
    assert len([name for name in loaded if name.startswith("swarm")]) <= 8 and not loaded & set(HEAVY)


@pytest.mark.parametrize("words", ["locks", "status", "lock f --detach --ttl 60"])
def test_a_machine_without_a_store_needs_no_slow_library(ground: Ground, words: str):
    done, loaded = loaded_by(ground, words.split())
    assert done.code == 0 and os.path.exists(ground.database) is ("--ttl" in words) and not loaded & set(HEAVY)


@pytest.mark.parametrize("verb", ["register", "deregister", "locks", "lock", "unlock", "status", "alive"])
@pytest.mark.sampled
def test_what_hooks_call_imports_nothing_slow(ground: Ground, verb: str):
    ground.session("s1", "someone")
    me = ground.session("s2", "me")
    argv = {
        "register": ["register", ground.scope, "--label", "me", "--runtime", "claude-code", "--session-id", "s2",
                     "--lease-seconds", "86400", "--client", "1:1", "--state", "working", "--pane", "p1", "--json"],
        "deregister": ["deregister", "--runtime", "claude-code", "--session-id", "s2", "--json"],
        "locks": ["locks", "--json"],
        "lock": ["lock", "a.txt", "--as", me["id"], "--json"],
        "unlock": ["unlock", "a.txt", "--as", me["id"], "--json"],
        "status": ["status"],
        "alive": ["alive", "--runtime", "claude-code", "--session-id", "s2"],
    }[verb]  # fmt: skip
    if verb == "unlock":
        ground.lock(me, "a.txt")
    done, loaded = loaded_by(ground, argv)
    assert done.code == 0 and (verb not in ("register", "deregister", "lock") or json.loads(done.out)["id"]), done
    assert loaded & set(HEAVY) == set()
    assert "swarm_mcp.store.database" in loaded  # the list is the real one


def test_a_store_that_is_new_is_made_by_the_first_register(ground: Ground):
    done = ground.process("register", "--json")
    assert done.code == 0 and os.path.exists(ground.database)
    assert ground.process("instances", "--json").json[0]["id"] == done.json["id"]


def test_nothing_is_read_from_standard_input(ground: Ground):
    done = subprocess.run([*SWARM, "locks"], stdin=subprocess.PIPE, capture_output=True, cwd=ground.repo, timeout=60)
    assert done.returncode == 0
    closed = ["/bin/sh", "-c", 'exec "$@" 0<&-', "sh", *SWARM, "locks"]
    assert subprocess.run(closed, capture_output=True, cwd=ground.repo, timeout=60).returncode == 0


NOTE = Option("--note TEXT", "why")
FILES = (Usage(Word("FILE", "the file", repeated=True), NOTE, JSON),)
HOLD = (
    Usage(Word("FILE", "the file", repeated=True), Word("COMMAND", "the command", repeated=True, behind=True)),
    Usage(Option("--git", required=True), Word("COMMAND", "the command", repeated=True, behind=True)),
)
KEYS = (
    Usage(choice("list", optional=True), Option("--prefix TEXT")),
    Usage(choice("get"), Word("KEY", "the key")),
    Usage(choice("move"), Option("--x N", "to where", required=True), Option("--how HOW", choices=("up", "down"))),
)


@pytest.mark.parametrize(
    ("usages", "line", "words", "behind"),
    [
        (FILES, "a --note x b", ["a", "b"], None),
        (FILES, "a -- --json b", ["a", "--json", "b"], 2),
        (FILES, "a --", ["a"], 0),
        (HOLD, "a -- b --json -- c", ["a", "b", "--json", "--", "c"], 4),
        (HOLD, "--git -- b", ["b"], 1),
        (KEYS, "", [], None),
        (KEYS, "get k", ["get", "k"], None),
        (KEYS, "move --x 1 --how=up", ["move"], None),
    ],
)
def test_words(usages, line: str, words: list[str], behind: int | None):
    arguments = parse("verb", usages, line.split())
    assert (arguments.words, arguments.behind) == (words, behind)


@pytest.mark.parametrize(
    ("usages", "line", "said"),
    [
        (FILES, "", "missing the file: swarm-mcp verb FILE ..."),
        (FILES, "a --note", "--note wants a value"),
        (FILES, "a --json=1", "--json takes no value"),
        (FILES, "a --nte x", "Unknown flag: --nte (did you mean --note?)"),
        (FILES, "a --ttl 9", "Unknown flag: --ttl; verb takes --note, --json"),
        (HOLD, "a", "missing the command: swarm-mcp verb FILE ... -- COMMAND ..."),
        (HOLD, "a --", "missing the command: swarm-mcp verb FILE ... -- COMMAND ..."),
        (HOLD, "-- b", "missing the file: swarm-mcp verb FILE ... -- COMMAND ..."),
        (HOLD, "a --git -- b", "--git is not for `swarm-mcp verb FILE ... -- COMMAND ...`"),
        (KEYS, "gt", "unknown verb subcommand 'gt' (did you mean get?); choose from list, get, move"),
        (KEYS, "get", "missing the key: swarm-mcp verb get KEY"),
        (KEYS, "get k more", "'more' is one word too many; verb takes 2"),
        (KEYS, "get k -prefx", "'-prefx' is one word too many; verb takes 2"),
        ((Usage(JSON),), "-json", "'-json' is one word too many (did you mean --json?); verb takes none"),
        (KEYS, "get k --prefix x", "--prefix is not for `swarm-mcp verb get KEY`"),
        (KEYS, "move", "missing to where: swarm-mcp verb move --x N"),
        (KEYS, "move --x 1 --how dwn", "unknown how 'dwn' (did you mean down?); choose from up, down"),
    ],
)
def test_what_is_refused(usages, line: str, said: str):
    with pytest.raises(UsageError) as error:
        parse("verb", usages, line.split())
    assert str(error.value) == said


def test_a_blank_word_is_no_subcommand():
    with pytest.raises(UsageError, match="unknown verb subcommand ''; choose from list, get, move"):
        parse("verb", KEYS, [""])


def test_values():
    arguments = parse(
        "verb", (Usage(NOTE, Option("--at N", repeatable=True, also="--when")),), "--at 1 --when=2".split()
    )
    assert arguments.all("--at") == ["1", "2"] and arguments.value("--at") == "2" and arguments.number("--at") == 2
    assert arguments.value("--note") == "" and arguments.seconds_if_given("--note") is None
    assert arguments.seconds("--note", 5.0) == 5.0 and not arguments.given("--note") and not arguments.json
    assert parse("verb", FILES, ["f", "--note", "--json"]).value("--note") == "--json"
    assert parse("verb", FILES, ["f", "--note=--json=1"]).value("--note") == "--json=1"
    for text in ("1.5", "x", "9" * 30):
        wrong = parse("verb", (Usage(NOTE),), ["--note", text])
        with pytest.raises(UsageError):
            wrong.number("--note")


CONTRIBUTES = """
VERBS = {"hello": "scratch.commands"}
PLACES = {"hello": "lock"}
ALIASES = {"hi": "hello"}
OTHER_WORDS = {"greet": "hello"}
TOOLS = ("scratch.tools",)
CHECKS = {"weather": "scratch.checks:weather"}
REACTIONS = {"locks changed": "scratch.checks:noted"}
"""
COMMANDS = '''
from swarm_mcp.cli.arguments import LOCKS, Arguments, Usage, verb
from swarm_mcp.cli.output import say


@verb(Usage(), group=LOCKS)
def hello(args: Arguments) -> int:
    """hello: greet the reader

    example: swarm-mcp hello
    """
    say("hello from elsewhere")
    return 0
'''
TOOLS = """
from swarm_mcp.server.tool import Answer, Tool

TOOLS = (Tool("hello", "Greets.", {}, lambda call, arguments: Answer(text="hello"), reads=True),)
"""
CHECKS = """
from swarm_mcp.runtimes.base import Finding

NOTED = []


def weather(asked):
    return Finding("weather", "ok", f"fair in {asked.scope_flag}")


def noted(what):
    NOTED.append(what)
    return len(NOTED)
"""


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package outside of ours, and its one line in the list."""
    folder = folder_at(tmp_path / "scratch")
    modules = {"__init__": "", "contributes": CONTRIBUTES, "commands": COMMANDS, "tools": TOOLS, "checks": CHECKS}
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(contributions, "PACKAGES", (*contributions.PACKAGES, "scratch"))
    monkeypatch.setattr(contributions, "REACTING", ("scratch",))
    monkeypatch.setattr(contributions, "shares_locks", lambda: True)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "scratch"]:
        del sys.modules[name]


def test_its_verb_runs_and_is_on_the_help_page(scratch: None, ground: Ground) -> None:
    assert ground.swarm("hello").out == ground.swarm("hi").out == "hello from elsewhere\n"
    assert "did you mean hello?" in ground.swarm("greet").err
    assert contributions.verbs()[contributions.verbs().index("lock") + 1] == "hello"
    assert "greet the reader" in ground.swarm("help").out
    assert ground.swarm("help", "hello").out.startswith("hello: greet the reader")


def test_its_tool_is_listed_after_the_others(scratch: None) -> None:
    assert list(all_tools())[-1] == "hello"


def test_its_check_is_a_part_of_doctor(scratch: None, ground: Ground) -> None:
    (found,) = [one for one in own_checks.findings(ground.scope) if one.name == "weather"]
    assert found.status == "ok" and ground.scope in found.message


def test_its_reactions_follow_a_change(scratch: None) -> None:
    assert contributions.react("locks changed", 7) == 1
    assert contributions.react("another change", 8) is None
    assert sys.modules["scratch.checks"].NOTED == [7]


def test_a_verb_of_the_coordinator_is_found_without_the_other_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contributions, "PACKAGES", ("no_such_package",))
    assert contributions.module_of("alive") == "swarm_mcp.cli.commands.reports"


def test_a_name_belongs_to_one_package() -> None:
    for part in ("VERBS", "ALIASES", "OTHER_WORDS", "CHECKS"):
        named = [name for one in contributions.lists() for name in getattr(one, part, ())]
        assert len(named) == len(set(named)), part
    known = set(contributions.verbs())
    assert set(contributions.table("ALIASES").values()) <= known


def test_everything_named_is_there() -> None:
    for name in [*contributions.table("CHECKS").values(), *contributions.table("REACTIONS").values()]:
        assert callable(contributions.function_named(name)), name
    for module in {*contributions.table("VERBS").values(), *contributions.names("TOOLS")}:
        assert contributions.module_named(module), module


DOCS = Path(__file__).parents[3] / "docs" / "dev"


def code_of(page: str) -> str:
    """The Python that a page shows."""
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.S)
    return code


@pytest.fixture
def ground_with_locks(ground: Ground) -> Ground:
    me = ground.plain("me")
    for file in ("src/a", "src/b", "doc/c"):
        ground.lock(me, file)
    return ground


def test_adding_a_verb(ground_with_locks: Ground, monkeypatch: pytest.MonkeyPatch):
    name = "swarm_mcp.cli.commands.count"
    module = module_from_spec(spec_from_loader(name, None))
    exec(compile(code_of("adding-a-verb.md"), name, "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(contributions.VERBS, "count", name)
    count = ground_with_locks.swarm("count", "--path", f"{ground_with_locks.scope}/src", "--json")
    assert count.json == {"count": 2} and ground_with_locks.swarm("count").out == "3\n"
    assert ground_with_locks.swarm("count", "--pth", "x").err.startswith(
        "swarm-mcp count: Unknown flag: --pth (did you"
    )
    assert "  --path DIR   only DIR, and what is in it\n" in ground_with_locks.swarm("help", "count").out


def test_adding_a_tool(ground_with_locks: Ground):
    scope: dict = {name: getattr(tool, name) for name in ("Answer", "Tool", "text", "flag", "number", "texts")}
    exec(code_of("adding-a-tool.md"), scope)
    (made,) = scope["TOOLS"]
    with ground_with_locks.store() as store:
        (me,) = store.instances.in_scope(ground_with_locks.scope)

        class Caller:
            def instance(self, _store, _meta):
                return me

        call = tool.Call(store, Caller(), {})
        assert made.call(call, {"path": f"{ground_with_locks.scope}/src"}).value == {"count": 2}
    assert made.described()["inputSchema"]["properties"]["path"]["default"] == ""

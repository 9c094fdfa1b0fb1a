"""The allowed imports of each module, and modules that a check may not load at all."""

import ast
import json
import shutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from support.requirement import requirement
from support.sessions import (
    ROOT,
    RUNTIMES,
    mistakes,
    new_session,
    peer_locks,
    ready_store,
    run,
    start,
    write,
    write_payload,
)

from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

CORE = ROOT / "swarm_hook_core"
HOOK_CORE = sorted(CORE.rglob("*.py"))
MODULES = [path.relative_to(CORE).with_suffix("").as_posix() for path in HOOK_CORE]
COSTLY = {"pathlib", "dataclasses", "subprocess", "tempfile", "asyncio"}


def imported(path: Path) -> set[str]:
    """Whole names of all that a file imports anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide what they name"
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@requirement("P-01")
def test_the_hook_core_imports_the_standard_library_and_itself() -> None:
    for path in HOOK_CORE:
        tops = {name.partition(".")[0] for name in imported(path)}
        assert tops - {"swarm_hook_core"} <= set(sys.stdlib_module_names), (path, tops)


INTEGRATIONS = ROOT / "integrations"


SCRIPTS = [path for path in sorted(INTEGRATIONS.rglob("hooks/*.py")) if "hs" not in path.parts]
STARTED_WITH = {
    "__future__", "swarm_hook_core", "runtime", "launch", "relay", "gc", "os", "sys", "typing", "collections",
}  # fmt: skip


@pytest.mark.parametrize(
    "script",
    [INTEGRATIONS / "hook.py", INTEGRATIONS / "launch.py", *sorted(INTEGRATIONS.glob("*/runtime.py"))],
    ids=str,
)
@requirement("P-04")
def test_what_a_hook_starts_with_is_short_and_imports_only_the_core(script: Path) -> None:
    assert {name.partition(".")[0] for name in imported(script)} <= STARTED_WITH
    assert len(script.read_text().splitlines()) <= 100


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.relative_to(INTEGRATIONS).as_posix())
def test_a_hook_script_has_at_most_ten_lines(script: Path) -> None:
    assert {name.partition(".")[0] for name in imported(script)} <= STARTED_WITH
    assert len(script.read_text().splitlines()) <= 10


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_wired_event_has_a_script(runtime: str) -> None:
    tree = json.loads((INTEGRATIONS / runtime / "hooks.json").read_text())
    commands = [hook["command"] for groups in tree["hooks"].values() for group in groups for hook in group["hooks"]]
    events = {command.rpartition(f" {runtime} ")[2].partition(";")[0] for command in commands}
    assert events == {path.stem for path in (INTEGRATIONS / runtime / "hooks").glob("*.py")}
    assert events == {path.stem for path in (INTEGRATIONS / "hooks").glob("*.py")}


def test_the_launcher_is_short() -> None:
    assert len((INTEGRATIONS / "hook.sh").read_text().splitlines()) <= 66


def test_every_module_of_the_core_loads_on_a_bare_interpreter() -> None:
    script = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}]\n"
        f"for name in {[module.replace('/', '.') for module in MODULES]!r}: __import__('swarm_hook_core.' + name)\n"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True)
    tops = {name.partition(".")[0] for name in done.stdout.split()} - {"__main__"}
    assert "swarm_hook_core" in tops
    assert tops - {"swarm_hook_core"} <= set(sys.stdlib_module_names), tops
    assert not any(name.startswith("swarm_mcp") for name in done.stdout.split())


@pytest.mark.parametrize("runtime", RUNTIMES)
@requirement("P-27")
def test_a_check_needs_no_process(runtime: str, tmp_path: Path) -> None:
    """The process that notes a denial (see test_denials) starts after it, and has no part in it."""
    ready_store()
    me = new_session()
    assert start(runtime, me, tmp_path).context
    peer_locks(tmp_path, tmp_path / "f")
    assert write(runtime, me, tmp_path, tmp_path / "f", PATH="/nowhere", SWARM_MCP_BIN="").reason
    assert mistakes() == []


def modules_of_command(*words: str, payload: dict[str, object]) -> set[str]:
    """Return the modules of a process of the coordinator at its end, without those of a bare interpreter."""
    script = (
        f"import sys; sys.path[:0] = {[str(ROOT), *sys.path]!r}; bare = set(sys.modules)\n"
        "from swarm_mcp.cli.main import main\n"
        f"assert main({list(words)!r}) == 0\n"
        "sys.stderr.write(' '.join(set(sys.modules) - bare))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script],
        input=json.dumps(payload),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("locked", [False, True])
def test_a_hook_of_a_session_s_life_loads_nothing_costly_and_no_part_that_has_nothing_for_it(
    runtime: str, locked: bool, tmp_path: Path
) -> None:
    ready_store()
    with Store() as store:
        store.cleanup.some()  # its turn comes every half minute, in any process
    start(runtime, new_session(), tmp_path)  # the first start looks at the protection of the sessions there
    me = new_session()
    if locked:
        peer_locks(tmp_path, tmp_path / "f")
    payload: dict[str, object] = {"session_id": me, "cwd": str(tmp_path)}
    most = {"session_start": 54, "turn": 49, "session_end": 44}
    for event, name in (("session_start", "SessionStart"), ("turn", "UserPromptSubmit"), ("session_end", "SessionEnd")):
        told = {**payload, "hook_event_name": name, "source": "startup" if name == "SessionStart" else ""}
        loaded = modules_of_command("hook", event, "--runtime", runtime, "--within", "60", payload=told)
        parts = {module.removeprefix("swarm_mcp.store.") for module in loaded if module.startswith("swarm_mcp.store.")}
        assert not COSTLY & loaded
        assert parts <= {"cursors", "database", "driver", "messages", "reactions", "schema_version", "session_table",
                         "sessions"}  # fmt: skip
        ours = sorted(module for module in loaded if module.startswith("swarm_"))
        assert len(ours) <= most[event], ours
    assert mistakes() == []


# The most modules of the core beside a peer at work, in a process of its own: Python's start is most of its time.
MOST_IN_CHECK = {"Write": 32, "ls -la": 49, "git status": 54}
MOST_AFTER = 20


def modules_of_hook(event: str, payload: dict[str, object]) -> list[str]:
    """Return the modules of ours in a hook's own process."""
    script = str(INTEGRATIONS / "hook.py")
    words = [sys.executable, *"-X importtime -E -s -S".split(), script, "claude-code", event, "alone"]
    done = subprocess.run(words, input=json.dumps(payload), capture_output=True, text=True, check=True)
    return [line.split("|")[2].strip() for line in done.stderr.splitlines() if "swarm_hook_core" in line]


@pytest.mark.parametrize("what", MOST_IN_CHECK)
def test_a_check_in_a_process_of_its_own_loads_what_its_call_needs(what: str, tmp_path: Path) -> None:
    ready_store()
    me, peer = new_session(), new_session()
    for each in (me, peer):
        start("claude-code", each, tmp_path)
    assert write("claude-code", peer, tmp_path, tmp_path / "theirs").out == ""
    (tmp_path / "theirs").write_text("x")
    call = write_payload("claude-code", me, tmp_path, str(tmp_path / "mine"))
    if what != "Write":
        call = {**call, "tool_name": "Bash", "tool_input": {"command": what}}
    loaded = modules_of_hook("pre_tool_use", call)
    assert 20 < len(loaded) <= MOST_IN_CHECK[what], loaded
    loaded = modules_of_hook("post_tool_use", {**call, "hook_event_name": "PostToolUse", "tool_response": {}})
    assert 10 < len(loaded) <= MOST_AFTER, loaded
    assert mistakes() == []


# The most modules of ours in a short command.
MOST_IN_COMMAND = {"locks": 68, "status": 95, "lock f --detach --ttl 60": 107}  # with a cleaning that is due


@pytest.mark.parametrize("line", MOST_IN_COMMAND)
def test_a_short_command_loads_no_costly_module(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready_store()
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    loaded = modules_of_command(*line.split(), payload={})
    assert not (COSTLY | {"swarm_mcp.store.schema", "swarm_mcp.cli.terminal"}) & loaded
    ours = sorted(module for module in loaded if module.startswith("swarm_"))
    assert len(ours) <= MOST_IN_COMMAND[line], (len(ours), ours)


def test_the_coordinator_may_know_the_core_and_not_the_plugins() -> None:
    for path in (ROOT / "swarm_mcp").rglob("*.py"):
        assert not any(name.startswith("integrations") or name == "runtime" for name in imported(path)), path


def test_modules_of_the_coordinator_import_each_other_in_no_circle_not_even_for_types() -> None:
    """The check of imports looks at those that run, and takes each package for one."""
    paths = (ROOT / "swarm_mcp").rglob("*.py")
    files = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}
    graph: dict[str, set[str]] = {name: set() for name in files}
    for name, path in files.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                parts = {f"{node.module}.{alias.name}" for alias in node.names}
                graph[name] |= {part if part in files else str(node.module) for part in parts}
            elif isinstance(node, ast.Import):
                graph[name] |= {alias.name for alias in node.names}
    TopologicalSorter({name: (found - {name}) & set(files) for name, found in graph.items()}).prepare()


def evaluated_unions(tree: ast.Module) -> list[int]:
    """Return the lines of annotations with ``X | Y`` that Python evaluates as it loads: 3.9 cannot."""
    found: list[int] = []
    if any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body):
        return found  # nothing of them is worked out
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    # Those of a function's own variables are never worked out.
    unread = {node for one in functions for node in ast.walk(one) if isinstance(node, ast.AnnAssign)}
    for node in set(ast.walk(tree)) - unread:
        annotations = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        for annotation in filter(None, annotations):
            found += [part.lineno for part in ast.walk(annotation) if isinstance(part, ast.BinOp)]
    return found


def test_what_runs_in_a_client_is_python_3_9() -> None:
    """Apple's own ``python3`` is 3.9: a hook that it cannot load lets every write pass."""
    for path in [*HOOK_CORE, *INTEGRATIONS.rglob("*.py")]:
        tree = ast.parse(path.read_text(), str(path), feature_version=(3, 9))
        assert evaluated_unions(tree) == [], path
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        names = [node.func.id for node in calls if isinstance(node.func, ast.Name)]
        assert not {"aiter", "anext"} & set(names), path
        pairs = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "zip"]
        newer = [node.lineno for node in pairs if any(k.arg == "strict" for k in node.keywords)]
        newer += [node.lineno for node in calls if any(k.arg == "root_dir" for k in node.keywords)]
        places = [node for node in calls if ast.unparse(node.func).rpartition(".")[2].startswith(("bisect", "insort"))]
        newer += [node.lineno for node in places if any(k.arg == "key" for k in node.keywords)]
        assert newer == [], path


def python_3_9() -> str:
    """Return a Python 3.9 of this machine from ``PATH`` or a version manager, or an empty text."""
    named = [shutil.which("python3.9"), *Path("~/.pyenv/versions").expanduser().glob("3.9.*/bin/python3.9")]
    for candidate in [name for name in named if name]:
        asked = [candidate, "-c", "import sys, _sqlite3; print(sys.version_info[1])"]
        done = subprocess.run(asked, capture_output=True)
        if done.stdout.strip() == b"9":
            return str(candidate)
    return ""


OLDEST = python_3_9()


@pytest.mark.skipif(not OLDEST, reason="no Python 3.9 on this machine")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_hooks_work_on_python_3_9(runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}]\n"
        f"for name in {[module.replace('/', '.') for module in MODULES]!r}: __import__('swarm_hook_core.' + name)\n"
    )
    subprocess.run([OLDEST, "-I", "-S", "-B", "-c", script], check=True)
    ready_store()
    monkeypatch.setattr("support.sessions.INTERPRETER", OLDEST)
    me = new_session()
    assert "registered" in start(runtime, me, tmp_path).context
    assert write(runtime, me, tmp_path, tmp_path / "f").out == ""
    peer_locks(tmp_path, tmp_path / "f")
    assert "swarm lock blocked" in write(runtime, me, tmp_path, tmp_path / "f").reason
    shell = {**write_payload(runtime, me, tmp_path, "f"), "tool_name": "Bash", "tool_input": {"command": "echo > f"}}
    assert "swarm lock blocked Bash" in run(runtime, "pre_tool_use", shell).reason, "by way of the coordinator"
    assert mistakes() == []


def test_whatever_survives_json_that_is_bad_survives_json_that_is_deep() -> None:
    """Python's parser has another error for nesting: code that forgets it ends, and other code goes on."""
    forgotten = []
    for path in [path for top in ("swarm_hook_core", "swarm_mcp") for path in (ROOT / top).rglob("*.py")]:
        text = path.read_text()
        tree = ast.parse(text if "load" in text else "")
        for block in (node for node in ast.walk(tree) if isinstance(node, ast.Try)):
            caught = {
                name.id
                for one in block.handlers
                if one.type
                for name in ast.walk(one.type)
                if isinstance(name, ast.Name)
            }
            calls = [node for line in block.body for node in ast.walk(line) if isinstance(node, ast.Call)]
            if (
                "ValueError" in caught
                and not caught & {"RecursionError", "Exception"}
                and any(map(_parses_json, calls))
            ):
                forgotten.append(f"{path.relative_to(ROOT)}:{block.lineno}")
    assert forgotten == []


def _parses_json(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Attribute):
        return (
            isinstance(function.value, ast.Name) and function.value.id == "json" and function.attr in ("load", "loads")
        )
    return isinstance(function, ast.Name) and function.id == "loads"

"""The cheap start of a short command: modules from their bytecode, and as usual if that is not fresh."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.sessions import INTERPRETER, ROOT

SCRIPT = """
import sys
sys.path.insert(0, {root!r})
sys.argv = ["swarm-mcp", *{words!r}]
from swarm_mcp.start import begin
begin()
import swarm_mcp.part.one as one, swarm_mcp.part as part
loaders = [type(module.__spec__.loader).__name__ for module in (part, one)]
import json
print(json.dumps([loaders, one.VALUE, one.__file__, list(part.__path__), "_collections_abc" in one.ALL]))
"""
SHORT = ["lock", "f"]


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Two small packages in place of ours, with the real start."""
    for name in ("swarm_mcp/start.py", "swarm_hook_core/lean.py", "swarm_hook_core/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "swarm_mcp/part").mkdir()
    (tmp_path / "swarm_mcp/__init__.py").touch()
    (tmp_path / "swarm_mcp/part/__init__.py").touch()
    (tmp_path / "swarm_mcp/part/one.py").write_text(
        "from __future__ import annotations\nimport os, sys\nALL = set(sys.modules)\nVALUE = 1\n"
    )
    subprocess.run([INTERPRETER, "-I", "-S", "-m", "compileall", "-q", str(tmp_path)], check=True)
    return tmp_path


def started(root: Path, words: list[str], *flags: str) -> tuple[list[str], int]:
    """Return the loaders of a package and of a module in it, and the module's value."""
    script = SCRIPT.format(root=str(root), words=words)
    done = subprocess.run(
        [INTERPRETER, "-I", "-S", "-B", *flags, "-c", script], capture_output=True, text=True, check=True
    )
    loaders, value, file, folders, has_abstract = json.loads(done.stdout)
    assert file == str(root / "swarm_mcp/part/one.py") and folders == [str(root / "swarm_mcp/part")]
    assert has_abstract is (loaders[0] != "NoneType"), "`os` was loaded without them"
    return loaders, value


def test_a_short_command_takes_the_bytecode(packages: Path) -> None:
    assert started(packages, SHORT) == (["NoneType", "NoneType"], 1)


@pytest.mark.parametrize("words", [[], ["serve"], ["lock", "--help"], ["nonsense"]])
def test_any_other_command_starts_as_usual(words: list[str], packages: Path) -> None:
    # `os` is loaded with its abstract classes then, here by the import of the module.
    script = SCRIPT.format(root=str(packages), words=words)
    done = subprocess.run([INTERPRETER, "-I", "-S", "-B", "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)[0] == ["SourceFileLoader", "SourceFileLoader"]


@pytest.mark.parametrize("change", ["edited", "same size", "uncompiled", "torn", "other version", "unreadable", "-O"])
def test_a_module_without_fresh_bytecode_is_imported_as_usual(change: str, packages: Path) -> None:
    source = packages / "swarm_mcp/part/one.py"
    (compiled,) = (packages / "swarm_mcp/part/__pycache__").glob("one.*.pyc")
    data, flags, value = compiled.read_bytes(), [], 1
    if change in ("edited", "same size"):
        value = 22 if change == "edited" else 2
        found = source.stat()
        source.write_text(source.read_text().replace("1", str(value)))
        os.utime(source, (found.st_atime, found.st_mtime + (change == "same size")))
    elif change == "uncompiled":
        compiled.unlink()
    elif change == "torn":
        compiled.write_bytes(data[:10])
    elif change == "other version":
        compiled.write_bytes(b"\0" * 4 + data[4:])
    elif change == "unreadable":
        compiled.unlink()
        compiled.mkdir()
    else:
        flags = ["-O"]
    loaders, found_value = started(packages, SHORT, *flags)
    assert found_value == value
    assert loaders == ([*["SourceFileLoader"] * 2] if flags else ["NoneType", "SourceFileLoader"])


def in_a_short_command(root: Path, code: str) -> str:
    """Return the output of `code`, which runs where a short command has begun."""
    begun = (
        f"import sys; sys.path.insert(0, {str(root)!r}); sys.argv[1:] = {SHORT!r}; import swarm_mcp.start as start\n"
    )
    words = [INTERPRETER, "-I", "-S", "-B", "-c", f"{begun}start.begin()\n{code}"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_beside_threads_modules_are_imported_as_usual(packages: Path) -> None:
    code = """
import _thread
end = _thread.allocate_lock()
end.acquire()
_thread.start_new_thread(end.acquire, ())
while not _thread._count():
    pass
import swarm_mcp.part
end.release()
while _thread._count():
    pass
from swarm_mcp.part import one
print(type(swarm_mcp.part.__spec__.loader).__name__, one.__spec__.loader)
"""
    assert in_a_short_command(packages, code) == "SourceFileLoader None\n"


def test_a_module_is_where_the_import_system_would_put_it(packages: Path) -> None:
    (packages / "swarm_mcp/part/__init__.py").write_text("from swarm_mcp.part.one import VALUE\n")
    subprocess.run([INTERPRETER, "-I", "-S", "-m", "compileall", "-q", str(packages)], check=True)
    code = """
from importlib.util import find_spec
import swarm_mcp.part.one as one
part = sys.modules["swarm_mcp.part"]
print(part.VALUE, part.one is one, sys.modules["swarm_mcp"].part is part, part.__package__, one.__package__)
print(find_spec("swarm_mcp.part").origin == part.__file__, find_spec("swarm_mcp.part.none"))
"""
    expected = "1 True True swarm_mcp.part swarm_mcp.part\nTrue None\n"
    assert in_a_short_command(packages, code) == expected


def test_a_module_that_fails_is_tried_again(packages: Path) -> None:
    (packages / "swarm_mcp/part/bad.py").write_text("import sys\nsys.tries += 1\n1 / (sys.tries - 1)\n")
    subprocess.run([INTERPRETER, "-I", "-S", "-m", "compileall", "-q", str(packages)], check=True)
    code = """
sys.tries = 0
for _ in range(2):
    try:
        import swarm_mcp.part.bad
    except ZeroDivisionError:
        print("swarm_mcp.part.bad" in sys.modules)
print(sys.tries, swarm_mcp.part.bad.__name__)
"""
    assert in_a_short_command(packages, code) == "False\n2 swarm_mcp.part.bad\n"


def test_a_whole_command_runs_from_bytecode_alone(tmp_path: Path) -> None:
    code = (
        f"import sys; sys.path[:0] = {[str(ROOT), *sys.path]!r}; sys.argv = ['swarm-mcp', 'locks', '--json'];"
        " from swarm_mcp.start import begin; begin(); from swarm_mcp.cli.main import main; code = main();"
        " assert code == 0; assert 're' not in sys.modules and '_collections_abc' not in sys.modules"
    )
    env = {**os.environ, "SWARM_DB_PATH": str(tmp_path / "swarm.db")}
    done = subprocess.run([INTERPRETER, "-I", "-S", "-c", code], capture_output=True, text=True, cwd=tmp_path, env=env)
    assert (done.stdout, done.stderr) == ("[]\n", "")

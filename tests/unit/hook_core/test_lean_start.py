"""A hook's cheap start: ``os`` in part, and modules from the image of a plugin (``lean``)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import pytest
from support.sessions import INTERPRETER, ROOT

EVENT = ("codex", "pre_tool_use")
CALL = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A copy of the hooks in a folder of their own."""
    for name in ("integrations", "swarm_hook_core"):
        shutil.copytree(ROOT / name, tmp_path / "plugin" / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "plugin"


def hook(plugin: Path, *flags: str) -> str:
    """Run a hook; return its output."""
    command = [INTERPRETER, "-E", "-s", "-S", *flags, str(plugin / "integrations/hook.py"), *EVENT]
    done = subprocess.run(
        command, input=json.dumps({**CALL, "cwd": str(plugin)}), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


def image(plugin: Path) -> Path:
    (found,) = (plugin / "integrations/__pycache__").glob("hook.*.image")
    return found


def without_bytecode(plugin: Path) -> None:
    for path in plugin.rglob("*.pyc"):
        path.unlink()


def compiled(plugin: Path) -> set[str]:
    """Return the modules that Python has compiled since."""
    return {path.name.partition(".")[0] for path in plugin.rglob("*.pyc")}


def test_the_first_hook_makes_an_image_and_the_next_ones_load_from_it(plugin: Path) -> None:
    assert hook(plugin) == ""
    assert image(plugin).stat().st_mode & 0o022 == 0
    without_bytecode(plugin)
    before = image(plugin).stat().st_mtime_ns
    assert hook(plugin) == ""
    assert compiled(plugin) == {"lean", "relay"}
    assert image(plugin).stat().st_mtime_ns == before


def test_a_source_that_was_changed_is_taken_and_the_image_follows(plugin: Path) -> None:
    hook(plugin)
    source = plugin / "swarm_hook_core/hooks.py"
    source.write_text(source.read_text() + "\nprint('changed', flush=True)\n")
    assert hook(plugin) == "changed\n"
    without_bytecode(plugin)
    assert hook(plugin) == "changed\n"
    assert compiled(plugin) == {"lean", "relay"}


def test_a_module_that_is_gone_from_the_plugin_is_not_taken_from_the_image(plugin: Path) -> None:
    hook(plugin)
    own = plugin / "integrations/codex/hooks/pre_tool_use.py"
    own.unlink()
    shared = plugin / "integrations/hooks/pre_tool_use.py"
    shared.write_text("print('shared')\n")
    assert hook(plugin) == "shared\n"


@pytest.mark.parametrize("damage", ["empty", "zeros", "torn", "other version", "garbage", "folder", "link"])
def test_a_damaged_image_is_passed_over(plugin: Path, damage: str, tmp_path: Path) -> None:
    hook(plugin)
    path = image(plugin)
    data = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage == "link":
        (tmp_path / "elsewhere").write_bytes(data)
        path.symlink_to(tmp_path / "elsewhere")
    else:
        half = len(data) // 2
        path.write_bytes(
            {
                "empty": b"",
                "zeros": bytes(len(data)),
                "torn": data[:half],
                "other version": data.replace(b"swarm hooks 1 ", b"swarm hooks 0 ", 1),
                "garbage": data[: 1 << 15] + bytes(reversed(data[1 << 15 :])),
            }[damage]
        )
    assert hook(plugin) == ""
    assert hook(plugin) == ""
    if damage not in ("folder", "link"):
        without_bytecode(plugin)
        hook(plugin)
        assert compiled(plugin) == {"lean", "relay"}, "it was written anew"


STRANGE = {
    "writable by its group": lambda path: path.chmod(0o664),
    "writable by all": lambda path: path.chmod(0o646),
    "of another user": lambda path: os.chown(path, 12345, -1),
    "with a second name": lambda path: os.link(path, path.with_suffix(".other")),
}


@pytest.mark.parametrize("case", STRANGE)
def test_an_image_that_another_user_could_have_written_is_never_run(plugin: Path, case: str) -> None:
    hook(plugin)
    before = image(plugin).read_bytes()
    without_bytecode(plugin)
    try:
        STRANGE[case](image(plugin))
    except PermissionError:
        pytest.skip("only root gives files away")
    assert hook(plugin) == ""
    assert "hooks" in compiled(plugin), "the modules were imported without it"
    for path in plugin.rglob("*.other"):
        path.unlink()
    without_bytecode(plugin)
    hook(plugin)
    assert compiled(plugin) == {"lean", "relay"} and image(plugin).stat().st_mode & 0o022 == 0, "it was written anew"
    assert len(image(plugin).read_bytes()) == len(before)


def test_an_image_of_another_umask_is_no_group_s_to_write(plugin: Path) -> None:
    before = os.umask(0o002)
    try:
        hook(plugin)
    finally:
        os.umask(before)
    assert image(plugin).stat().st_mode & 0o777 == 0o644


def test_an_image_of_another_python_is_passed_over(plugin: Path) -> None:
    """Two builds may share a name for their bytecode's files, as a pre-release and its release do."""
    hook(plugin)
    magic = MAGIC_NUMBER.hex().encode()
    image(plugin).write_bytes(image(plugin).read_bytes().replace(magic, b"0" * len(magic), 1))
    without_bytecode(plugin)
    assert hook(plugin) == ""
    assert "hooks" in compiled(plugin)


def test_a_folder_that_cannot_be_written_is_not_tried_by_each_hook(plugin: Path) -> None:
    if not os.geteuid():
        pytest.skip("root writes any folder")
    (plugin / "integrations/__pycache__").mkdir(mode=0o500)
    assert hook(plugin) == ""
    assert not list((plugin / "integrations/__pycache__").iterdir())
    assert "image" not in compiled(plugin)


def test_there_is_no_image_where_no_bytecode_is_wanted_or_none_can_be_written(plugin: Path) -> None:
    assert hook(plugin, "-B") == ""
    assert not list(plugin.rglob("__pycache__"))
    (plugin / "integrations/__pycache__").write_text("no folder")
    assert hook(plugin) == ""


LEAN = """
import sys
assert "os" not in sys.modules
sys.path.insert(0, {folder!r})
from lean import os
assert "_collections_abc" not in sys.modules and "stat" not in sys.modules
def reads(variables):
    assert variables.get("A") == "1" and variables.get("no", 2) == 2 and "A" in variables and "no" not in variables
    assert "A" in variables.keys() and dict(variables)["A"] == "1" and ("A", "1") in variables.items()
    assert {{**variables}}["A"] == "1" and variables.copy()["A"] == "1" and (variables | {{"B": "2"}})["B"] == "2"
    assert variables["odd"] == "\\udcff" and os.fsencode(variables["odd"]) == b"\\xff" and os.fsdecode(b"\\xff") == "\\udcff"
earlier, lean = os.environ, os
reads(os.environ)
assert os.path.realpath(".") == os.getcwd() and os.path.isdir("/") and not os.path.islink("/") and os.sep == "/"
assert getattr(os, "O_BINARY", 0) == 0 and not hasattr(os, "__path__")
assert "_collections_abc" not in sys.modules and sys.modules["os"] is os
del os.environ["B"]
import os
reads(os.environ)
reads(earlier)
assert earlier is not os.environ is lean.environ and "B" not in earlier and os.getenv("B") is None is lean.getenv("B")
assert lean.walk is os.walk and lean.error is OSError and "_collections_abc" in sys.modules
earlier["A"] = "5"
assert os.environ["A"] == "5" == earlier.pop("A") and "A" not in os.environ and "A" not in earlier
os.environ["A"] = "1"
assert os.environ.pop("A") == "1" and "A" not in os.environ and os.environ.pop("A", None) is None
os.environ.update(C="3")
assert os.environ.setdefault("C", "4") == "3" and "3" in os.environ.values()
import pathlib, subprocess
assert isinstance(pathlib.Path("a"), os.PathLike) and not isinstance("a", os.PathLike)
assert os.fspath(pathlib.Path("a")) == "a"
assert subprocess.run([sys.executable, "-c", "import os; print(os.environ['C'])"], capture_output=True).stdout.strip() == b"3"
try:
    os.environ.no_such_name
except AttributeError:
    print("well")
"""


SAMPLE = """
import sys
sys.path.insert(0, {folder!r})
import lean
given = {{
    "pack": ("VALUE = 1", "pack/__init__.py", ["pack"]),
    "pack.one": ("import pack.two as two\\nfrom pack import VALUE\\nNAME = __name__, __package__", "pack/one.py", []),
    "pack.two": ("from pack.one import __name__ as other", "pack/two.py", []),
    "pack.bad": ("import pack.one\\n1 / 0", "pack/bad.py", []),
}}
def find(name):
    if name in given:
        text, file, folders = given[name]
        return file, compile(text, file, "exec"), folders
machinery = sys.modules["_frozen_importlib"]
sys.modules["_frozen_importlib"] = type(sys)("of another release")
lean.import_by(find)  # does nothing there
sys.modules["_frozen_importlib"] = machinery
lean.import_by(find)
from pack.one import two, VALUE, NAME
import pack
assert NAME == ("pack.one", "pack") and VALUE == 1 and two.other == "pack.one" and pack.one.two is two
assert pack.__path__ == ["pack"] and pack.__package__ == "pack" and pack.__spec__.submodule_search_locations == ["pack"]
assert type(pack.__spec__) is type(sys.__spec__) and pack.one.__spec__.name == "pack.one" and pack.one.__file__ == "pack/one.py"
for name in ("pack.bad", "pack.none", "none", "none.other", "pack.one.none"):
    try:
        __import__(name)
    except (ZeroDivisionError if name == "pack.bad" else ImportError):
        assert name not in sys.modules and not hasattr(pack, "bad")
    else:
        raise AssertionError(name)
import _thread, time
lock = _thread.allocate_lock(); lock.acquire()
def imports():
    try:
        import pack.three
    except ImportError:  # as usual: not by the source
        done.append(1)
    lock.release()
given["pack.three"], done = ("", "pack/three.py", []), []
_thread.start_new_thread(imports, ())
lock.acquire()
while _thread._count():
    time.sleep(0.01)
assert done
import pack.three, json, fcntl
print("well")
"""


def test_imports_from_a_source_are_as_python_makes_them() -> None:
    script = SAMPLE.format(folder=str(ROOT / "swarm_hook_core"))
    done = subprocess.run([INTERPRETER, "-B", "-I", "-S", "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("well\n", "")


def test_os_in_part_does_all_that_os_does() -> None:
    script = LEAN.format(folder=str(ROOT / "swarm_hook_core"))
    env = {"A": "1", "B": "2", "odd": "\udcff", "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    done = subprocess.run([INTERPRETER, "-B", "-I", "-S", "-c", script], capture_output=True, text=True, env=env)
    assert (done.stdout, done.stderr) == ("well\n", "")

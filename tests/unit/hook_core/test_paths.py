"""Spellings of one file."""

import os
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.altered import Limits, Listening
from support.files import folder_at, text_at
from support.requirement import requirement

from swarm_hook_core import paths, traces
from swarm_hook_core.paths import (
    NO_CASE,
    contains,
    git_root,
    ignores_case,
    key_of,
    keys_for,
    real_paths,
    spellings,
    translated,
)

NFC, NFD = "caf\u00e9.md", "cafe\u0301.md"


def found(lock: Path | str, spelled: str, cwd: Path | str = "/") -> bool:
    """Return True if a write to `spelled` from `cwd` finds a lock taken on absolute `lock`."""
    return key_of(str(lock)) in keys_for(spelled, str(cwd))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """``real/deep/f`` and ``real/f``, ``ln`` -> real/deep, ``l`` -> real/f, ``gone`` -> nothing."""
    text_at(tmp_path / "real" / "deep" / "f", "deep")
    (tmp_path / "real" / "f").write_text("f")
    (tmp_path / "ln").symlink_to("real/deep")
    (tmp_path / "l").symlink_to("real/f")
    (tmp_path / "gone").symlink_to("not/there")
    return tmp_path


@pytest.mark.parametrize(
    "spelled",
    [
        "{0}/real/f", "real/f", "./real/f", "real//f", "real/./f", "real/deep/../f", "nowhere/../real/f", " real/f",
        "real/f \t", "real/f\n", "l", "{0}//real///f", "//{0}/real/f", "///{0}/real/f", "ln/../f", "../{1}/real/f",
        "real/f/", "real/f/.",
    ],
)  # fmt: skip
@requirement("P-17")
def test_every_spelling_of_a_file_finds_its_lock(spelled: str, tree: Path) -> None:
    assert found(tree / "real" / "f", spelled.format(tree, tree.name), tree)


@pytest.mark.parametrize("spelled", ["real/g", "f", "real/f2", "real", "real/F", "real/deep/f", "ln/f", ""])
def test_another_file_does_not_find_it(spelled: str, tree: Path) -> None:
    assert not found(tree / "real" / "f", spelled, tree)


def test_a_link_and_its_target_are_one_file(tree: Path) -> None:
    assert found(tree / "l", "real/f", tree)
    assert found(tree / "real" / "f", "l", tree)
    assert found(tree / "ln" / "new", "real/deep/new", tree), "also where it does not exist yet"
    assert found(tree / "real" / "deep" / "new", "ln/new", tree)
    assert found(tree / "not" / "there", "gone", tree), "a dangling link names what writing through it would make"
    assert found(tree / "ln" / "a" / "b" / "c", "real/deep/a/b/c", tree)


def test_behind_a_link_both_readings_of_dot_dot_count(tree: Path) -> None:
    # To an editor `ln/../f` is `f`; to the kernel it is `real/f`.
    assert not (tree / "f").exists() and (tree / "ln" / ".." / "f").read_text() == "f"
    assert found(tree / "f", "ln/../f", tree)
    assert found(tree / "real" / "f", "ln/../f", tree)
    assert found(tree / "new", "ln/../new", tree) and found(tree / "real" / "new", "ln/../new", tree)


def test_a_relative_path_through_a_linked_working_folder(tree: Path) -> None:
    assert found(tree / "real" / "deep" / "f", "f", tree / "ln")
    assert found(tree / "real" / "f", "../f", tree / "ln")
    assert found(tree / "f", "../f", tree / "ln")


def test_a_link_that_has_moved_on_is_found_under_its_own_name(tree: Path) -> None:
    # The lock stored its own spelling and the key of that day.
    stored = {str(tree / "l"), key_of(str(tree / "l"))}
    (tree / "l").unlink()
    (tree / "l").symlink_to("real/deep/f")
    assert stored & set(keys_for("l", str(tree)))
    assert stored & set(keys_for("real/f", str(tree)))
    assert not stored & set(keys_for("real/deep/f", str(tree)))


def test_links_in_a_circle_end(tree: Path) -> None:
    (tree / "a").symlink_to("b")
    (tree / "b").symlink_to("a")
    assert found(tree / "a", "a", tree)


def test_trailing_blanks_may_belong_to_the_name(tree: Path) -> None:
    (tree / "x ").write_text("")
    assert found(tree / "x ", "x ", tree)
    assert found(tree / "x", "x ", tree)
    assert not found(tree / "x ", "x", tree)


@pytest.mark.parametrize("spelled", ["", "\0", "a\0b", " \0", "a/" * 3000 + "f", "/x" * 2_000_000])
def test_what_names_no_file_has_no_key(spelled: str) -> None:
    assert keys_for(spelled, "/tmp") == []


@pytest.mark.parametrize(
    "spelled", ["a" * 300, "a/" * 1500 + "f", "é" * 200, "\udcff.md", "%2e%2e/f", "~/f", "$HOME/f"]
)
def test_an_unusual_name_still_names_itself(spelled: str, tmp_path: Path) -> None:
    assert found(os.path.normpath(tmp_path / spelled), spelled, tmp_path)


def test_names_beside_dot_dot(tmp_path: Path) -> None:
    for name in ("..f", "...", "..f/x", "a..", ".. "):
        assert found(tmp_path / name, name, tmp_path), name
    assert not found(tmp_path.parent / "f", "..f", tmp_path)


names = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda name: name.strip() == name and name not in (".", "..")
)


@given(st.lists(names, min_size=1, max_size=5), st.data())
def test_every_respelling_shares_a_key(parts: list[str], data: st.DataObject) -> None:
    target = "/" + "/".join(["no-such-place", *parts])
    depth = data.draw(st.integers(0, len(parts)), "working folder")
    cwd = "/" + "/".join(["no-such-place", *parts[:depth]])
    bits = []
    for part in parts[depth:]:
        bits += data.draw(st.lists(st.sampled_from([".", "", "other/..", "a/b/../.."]), max_size=2))
        bits.append(part)
    relative = "/".join(bits) or "."
    if relative.startswith("/"):
        relative = "." + relative
    blanks = data.draw(st.sampled_from(["", " ", "\t", " \n"]))
    up = "../" * (depth + 1) + target[1:]
    for spelled in (relative + blanks, up + blanks, target + blanks, "/" + target):
        assert found(target, spelled, cwd)


@given(st.lists(names, min_size=1, max_size=4), st.lists(names, min_size=1, max_size=4))
def test_two_paths_share_a_key_only_if_they_are_one(left: list[str], right: list[str]) -> None:
    one, other = "/no-such-place/" + "/".join(left), "/no-such-place/" + "/".join(right)
    assert found(one, other) == (one == other)


@given(st.text(), st.text())
def test_no_text_is_too_strange(spelled: str, cwd: str) -> None:
    for key in keys_for(spelled, "/" + cwd.replace("\0", "")):
        assert os.path.isabs(key.removeprefix(paths.NO_CASE))


def blind_mount(folder: Path) -> bool:
    """Make `folder` a file system that ignores letter case, if this machine can."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "casefold", "none", folder], capture_output=True, check=False)
    if done.returncode:
        return False
    subprocess.run(["chattr", "+F", folder], check=True, capture_output=True)
    return True


def simulate_blindness(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make looking names up below `folder` ignore case and Unicode form, as the kernel would there."""
    real_stat, real_lstat, real_scandir = os.stat, os.lstat, os.scandir

    def entry(path: object) -> object:
        text = path if isinstance(path, str) else os.fspath(path) if isinstance(path, os.PathLike) else ""
        if not text.startswith(str(folder) + "/"):
            return path
        at = str(folder)
        for part in text[len(at) + 1 :].split("/"):
            wanted = unicodedata.normalize("NFC", part).casefold()
            there = os.listdir(at) if os.path.isdir(at) else []
            hits = [name for name in there if unicodedata.normalize("NFC", name).casefold() == wanted]
            at = os.path.join(at, hits[0] if hits else part)
        return at

    monkeypatch.setattr(os, "stat", lambda path, *a, **k: real_stat(entry(path), *a, **k))
    monkeypatch.setattr(os, "lstat", lambda path, *a, **k: real_lstat(entry(path), *a, **k))
    monkeypatch.setattr(os, "scandir", lambda path: real_scandir(entry(path)))
    monkeypatch.setattr(paths, "_is_marked_caseless", lambda path: contains(str(folder), path))


@pytest.fixture
def blind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on a file system that takes ``A`` and ``a`` for one name: a real one if available."""
    folder = folder_at(tmp_path / "Volume")
    (tmp_path / "probe").touch()
    if (tmp_path / "PROBE").exists():
        yield folder
    elif sys.platform == "linux" and os.geteuid() == 0 and blind_mount(folder):
        yield folder
        subprocess.run(["umount", folder], check=True)
    else:
        simulate_blindness(folder, monkeypatch)
        yield folder


def test_letter_case_is_ignored_where_the_file_system_ignores_it(blind: Path) -> None:
    text_at(blind / "Src" / "Main.py", "")
    assert os.path.exists(blind / "sRC" / "MAIN.PY"), "the fixture itself"
    for spelled in ("Src/Main.py", "src/main.py", "SRC/MAIN.PY"):
        assert ignores_case(str(blind / spelled))
        assert found(blind / "Src" / "Main.py", spelled, blind)
        assert found(blind / spelled, "Src/Main.py", blind)
    assert not found(blind / "Src" / "Main.py", "Src/Main2.py", blind)


def test_letter_case_of_a_file_that_is_not_there_yet(blind: Path) -> None:
    (blind / "Src").mkdir()
    assert found(blind / "Src" / "New.py", "src/NEW.py", blind)
    assert found(blind / "src" / "new" / "er.py", "SRC/New/Er.py", blind)


def test_letter_case_of_a_new_file_at_the_top_of_a_volume(blind: Path) -> None:
    assert found(blind / "New.py", "new.PY", blind)


def test_a_lock_outlives_the_making_of_its_file(blind: Path) -> None:
    stored = {str(blind / "New.py"), key_of(str(blind / "New.py"))}
    (blind / "New.py").write_text("")
    assert stored & set(keys_for("new.py", str(blind)))


def test_unicode_forms_are_one_where_letter_case_is(blind: Path) -> None:
    text_at(blind / "Src" / NFC, "")
    assert found(blind / "Src" / NFC, f"Src/{NFD}", blind)
    assert found(blind / "Src" / NFD, f"src/{NFC.upper()}", blind)


def test_elsewhere_case_and_form_tell_files_apart(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("")
    if (tmp_path / "A.md").exists() or sys.platform == "darwin":
        pytest.fail("this test needs a file system that tells letter case apart: set TMPDIR to one")
    (tmp_path / NFC).write_text("")
    assert not ignores_case(str(tmp_path / "a.md"))
    assert not found(tmp_path / "a.md", "A.md", tmp_path)
    assert not found(tmp_path / NFC, NFD, tmp_path)


@pytest.mark.parametrize("empty", ["new", "new/er", "2026", "2026/11", "new/2026"])
def test_an_empty_folder_is_as_the_folder_over_it(tmp_path: Path, empty: str) -> None:
    (tmp_path / empty).mkdir(parents=True)
    assert ignores_case(str(tmp_path / empty / "a.py")) == (tmp_path / "NEW").exists() == sys.platform.startswith("da")
    assert ignores_case(str(tmp_path / empty / "later" / "a.py")) == sys.platform.startswith("da")


@pytest.mark.parametrize("name", ["Empty", "2026"])
def test_an_empty_folder_of_another_file_system_may_ignore_letter_case(tmp_path: Path, monkeypatch, name: str) -> None:
    real, volume = os.stat, tmp_path / name
    (volume / "Within").mkdir(parents=True)

    def stat(path, *words, **named):
        facts = list(real(path, *words, **named))
        facts[2] += contains(str(volume), str(path))  # another device
        return os.stat_result(facts)

    monkeypatch.setattr(os, "stat", stat)
    assert ignores_case(str(volume / "Within" / "a.py")) == (volume / "WITHIN").exists()
    (volume / "Within").rmdir()
    assert ignores_case(str(volume / "a.py"))


def test_two_files_that_differ_in_case_are_two(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("")
    (tmp_path / "A.md").write_text("")
    if len(os.listdir(tmp_path)) == 1:
        return  # one file, then; told above
    assert not found(tmp_path / "a.md", "A.md", tmp_path)


def test_a_link_of_the_other_case_is_not_blindness(tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text("")
    (tmp_path / "REAL.MD").symlink_to("gone")
    assert not ignores_case(str(tmp_path / "real.md"))


def test_a_mac_never_tells_unicode_forms_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(paths, "ignores_case", lambda path: False)
    assert key_of(f"/x/{NFD}") == key_of(f"/x/{NFC}") == f"/x/{NFC}"
    assert found(f"/x/{NFC}", f"/x/{NFD}") and found(f"/x/{NFD}", f"/x/{NFC}")


@given(st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1))
def test_where_case_is_ignored_every_writing_of_a_name_finds_its_lock(name: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "ignores_case", lambda path: True)
        stored = key_of("/x/" + unicodedata.normalize("NFC", name))
        assert stored.startswith(NO_CASE)
        assert stored in keys_for("/x/" + unicodedata.normalize("NFD", name), "/")
        assert stored in keys_for("/x/" + name.casefold(), "/") or name.casefold() != name.lower()


def test_a_key_with_case_is_not_found_without_it(tmp_path: Path) -> None:
    (tmp_path / "makefile").write_text("")
    assert key_of(str(tmp_path / "makefile")) not in keys_for("Makefile", str(tmp_path)) or ignores_case(str(tmp_path))


@pytest.mark.parametrize(
    ("path", "moved"),
    [
        ("/wt/f", "/main/f"),
        ("/wt/a/../f", "/main/f"),
        ("/wt", "/main"),
        ("/wt/..f", "/main/..f"),
        ("/wt/...", "/main/..."),
        ("/wtx/f", "/wtx/f"),
        ("/w", "/w"),
        ("/f", "/f"),
        ("/main/f", "/main/f"),
        ("/..wt/f", "/..wt/f"),
    ],
)
def test_a_path_moves_to_where_its_file_root_says(path: str, moved: str) -> None:
    assert translated(path, "/wt", "/wt", "/main") == moved


def test_a_session_below_its_git_root_keeps_its_place_under_the_other_root(tmp_path: Path) -> None:
    for name in ("wt", "main"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / ".git").mkdir()
    given_root = (str(tmp_path / "wt" / "sub"), str(tmp_path / "wt"), str(tmp_path / "main" / "sub"))
    assert translated(str(tmp_path / "wt" / "sub" / "f"), *given_root) == str(tmp_path / "main" / "sub" / "f")
    assert translated(str(tmp_path / "wt" / "f"), *given_root) == str(tmp_path / "main" / "f")
    assert translated(str(tmp_path / "wtx"), *given_root) == str(tmp_path / "wtx")


def test_without_a_file_root_nothing_moves() -> None:
    assert translated("/wt/f", "/wt", "/wt", "") == "/wt/f"
    assert translated("/wt/f", "/wt", "/wt", "/wt") == "/wt/f"


@pytest.mark.parametrize(
    ("folder", "path", "inside"),
    [
        ("/a", "/a", True),
        ("/a", "/a/b", True),
        ("/a/", "/a/b", True),
        ("/a", "/ab", False),
        ("/", "/x", True),
        ("/a", "/", False),
    ],
)
def test_containment(folder: str, path: str, inside: bool) -> None:
    assert contains(folder, path) is inside


def test_the_git_root_is_the_nearest_one(tmp_path: Path) -> None:
    inner = folder_at(tmp_path / "repo" / "sub" / "deep")
    (tmp_path / "repo" / ".git").mkdir()
    assert git_root(str(inner)) == str(tmp_path / "repo")
    (tmp_path / "repo" / "sub" / ".git").write_text("gitdir: elsewhere\n")
    assert git_root(str(inner)) == str(tmp_path / "repo" / "sub"), "a worktree or submodule has a file there"
    assert git_root("/no/such/place") == "/no/such/place"


def test_spellings_are_absolute_and_the_textual_one_comes_first(tree: Path) -> None:
    assert spellings("ln/../f", str(tree))[0] == str(tree / "f")
    assert all(os.path.isabs(path) for path in spellings("a", ""))


@pytest.mark.parametrize("place", ["real/deep/f", "real/f", "real/new", "real/none/new", "nowhere/a/b"])
def test_the_finder_of_keys_finds_what_key_of_would(tree: Path, place: str) -> None:
    keys = keys_for(str(tree / place), "/")
    (tree / "dangling").symlink_to("real/new")
    (tree / "folder").symlink_to("real")
    spelled = ["real/deep/f", "ln/f", "l", "gone", "real/f", "dangling", "folder/new", "folder/none/new", "folder/f/x"]
    spelled += ["nowhere/a/b", "folder/deep/../f", "real/new", "a\0b"]
    within = paths.finder(keys)
    for path in (f"{tree}/{one}" for one in spelled):
        key = key_of(path)
        assert within(path) == (key if key in keys else None), path


def test_one_look_at_the_disk_tells_that_a_path_is_another_file(tree: Path, failing) -> None:
    within = paths.finder(keys_for(str(tree / "real/f"), "/"))
    failing(paths, "key_of", pytest.fail.Exception)
    assert within(f"{tree}/real/deep/f") is None and within("/not/there/f") is None


@pytest.fixture(scope="module")
def maze(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Folders, links that lead down, up, sideways, into nothing and in circles, and work trees in one another."""
    top = tmp_path_factory.mktemp("maze").resolve()
    (top / "a" / "b" / "c").mkdir(parents=True)
    (top / "a" / "file").write_text("")
    (top / "a" / "b" / ".git").write_text("gitdir: elsewhere")
    (top / ".git").mkdir()
    for place in (top, top / "a", top / "a" / "b"):
        for name, leads_to in (
            ("down", "a/b"),
            ("up", ".."),
            ("aside", str(top / "a" / "b")),
            ("gone", "not/there"),
            ("self", "self"),
            ("ring", "gnir"),
            ("gnir", "ring/x"),
            ("chain", "down/up/aside"),
        ):
            (place / name).symlink_to(leads_to)
    return str(top)


STEPS = st.sampled_from(["a", "b", "c", "file", "down", "up", "aside", "gone", "self", "ring", "chain", "new", ".git"])
ODD_STEPS = STEPS | st.sampled_from(["..", ".", ""])
CIRCLES = {"self", "ring", "gnir"}
# Of `//` behind links in a circle Python itself makes a path at the root of the disk.
WALKS = st.lists(ODD_STEPS, min_size=1, max_size=7).filter(lambda walk: "" not in walk or CIRCLES.isdisjoint(walk))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WALKS, min_size=1, max_size=12), st.integers(0, 60))
@example([["ring", "x"], ["ring"], ["gnir", "x"]], 0)
@example([["a", "self", "..", "b"], ["a", "self"], ["a", "self", "new"]], 0)
def test_paths_that_are_resolved_together_are_as_each_by_itself(maze: str, walks: list[list[str]], depth: int) -> None:
    real = real_paths()
    written = ["/".join([maze, *walk]) for walk in walks]
    written += ["/".join([maze, *walk, *["new"] * depth, "f"]) for walk in walks]
    for path in [*written, *reversed(written)]:
        assert real(path) == os.path.realpath(path)


def test_paths_that_are_resolved_together_cost_a_look_for_each_folder(tmp_path: Path, listening: Listening) -> None:
    folder = folder_at(tmp_path.resolve() / "one" / "two")
    lstats = listening(os, "lstat")
    real = real_paths()
    for _ in range(3):
        for number in range(50):
            assert real(f"{folder}/{number}") == f"{folder}/{number}"
    looks = [os.fspath(call.given[0]) for call in lstats]
    assert len(looks) == 50 + len(folder.parts) - 1
    assert looks.count(str(folder)) == 1


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, max_size=7), st.integers(0, 40))
def test_the_top_of_a_deep_path_is_found_from_above_as_it_is_from_below(maze: str, walk: list[str], depth: int) -> None:
    """For every limit of a deep path."""
    folder = "/".join([maze, *walk, *["new"] * depth])
    found = []
    for deep in (0, 10_000):
        with pytest.MonkeyPatch.context() as patch:
            Limits(patch)(traces, DEEP=deep)
            top, git = traces.tree_top(folder)
            found.append((os.path.realpath(top), git and (git.st_dev, git.st_ino)))
    assert found[0] == found[1]

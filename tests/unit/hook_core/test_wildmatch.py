"""Patterns have git's meaning, two are told apart in either order, and each takes little time."""

import itertools
import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_hook_core import wildmatch
from swarm_hook_core.wildmatch import LONGEST, PatternUnreadable, covers, literal_prefix, of_path, overlap, parsed

pytestmark = pytest.mark.slow

# Names of a small tree, for all features of wildcards and classes: dots, dashes, brackets, digits, several levels.
NAMES = ["a", "b", "ab", "abc", "a.b", ".a", "a-b", "[a]", "]", "7", "A", "a*b", "-", "!x", "^", "z.sql"]
FILES = [
    *NAMES, *(f"{folder}/{name}" for folder in ("a", "ab", "src") for name in NAMES if name != folder),
    "src/deep/a", "src/deep/z.sql", "src/deep/more/z.sql", "src/deep/more/ab", "x/src/deep/a", "x/src/a",
]  # fmt: skip
FILES = [file for file in FILES if not any(other.startswith(file + "/") for other in FILES)]

PARTS = ["a", "b", "?", "*", "**", "***", "a*", "*b", "?b", "*.sql", "[ab]", "[!a]", "[^a]b", "[a-c]*", "[]a]", "[]-]",
         "[!]a]", "[a-]", "[--0]", "[[:alpha:]]", "[[:digit:]-]", "[[:upper:][:punct:]]", "[z-a]", "[\\]]", "\\*",
         "a\\*b", "\\[a\\]", "a**", "**b", "src", "deep", ".*", "*.*", "[a-b-c]", "*[.]*", "?*?", "[[:space:]a]",
         "[[a]"]  # fmt: skip


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wild")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    subprocess.run(["git", "init", "-q", str(folder)], check=True, env=environment)
    for file in FILES:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("x")
    subprocess.run(["git", "-C", str(folder), "add", "-A", "-f"], check=True, env=environment)
    return folder


def listed(repository: Path, pattern: str) -> set[str]:
    """Return git's list for it, with ``**`` as in .gitignore, counted from the top."""
    done = subprocess.run(
        ["git", "-C", str(repository), "ls-files", "-z", "--", f":(top,glob){pattern}"], capture_output=True, check=True
    )
    return {name for name in done.stdout.decode().split("\0") if name}


def ignored(repository: Path, pattern: str) -> set[str]:
    """Return the files that git ignores by a .gitignore with that one line, independent of the index."""
    (repository / ".git/info/exclude").write_text(pattern + "\n")
    done = subprocess.run(
        ["git", "-C", str(repository), "-c", "core.ignoreCase=false", "check-ignore", "--no-index", "--stdin", "-z"],
        input="\0".join(FILES), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return {name for name in done.stdout.split("\0") if name}


def ours(pattern: str) -> set[str]:
    segments = parsed(pattern)
    return {file for file in FILES if covers(segments, file)}


def with_inside(pattern: str) -> set[str]:
    """Return the same with everything in covered folders, as .gitignore has it."""
    segments = parsed(pattern)
    found = set()
    for file in FILES:
        parts = file.split("/")
        if any(covers(segments, "/".join(parts[: end + 1])) for end in range(len(parts))):
            found.add(file)
    return found


ANCHORED = ["/".join(parts) for parts in itertools.product(["a", "src", "*", "**", "?*"], PARTS)]
DEEPER = ["src/**/*.sql", "**/deep/**", "src/**", "**/src/**/a", "src/*/*/z.sql", "src/**/**/z.sql", "x/**/deep/?",
          "**/more/*", "*/deep/*", "**/*", "a/**/b", "src/***/a", "x/**/**/a"]  # fmt: skip


def test_a_pattern_with_a_slash_is_git_s_glob_pathspec(repository: Path) -> None:
    # A process each, so a sample. A pathspec that is a folder's own name covers its content, as a lock on it does.
    for pattern in [*DEEPER, *(one for one in ANCHORED[::4] if wildmatch.is_pattern(one))]:
        assert ours(pattern) == listed(repository, pattern), pattern


@pytest.mark.parametrize("end", ["", "/"])
def test_a_pattern_without_a_slash_counts_at_every_depth_as_in_gitignore(repository: Path, end: str) -> None:
    for pattern in [part for part in PARTS if not part.startswith("!")]:
        expected = ignored(repository, pattern + end)
        if end:  # the content of such folders; these are no files
            assert ours(pattern + end) == expected, pattern
        else:
            assert with_inside(pattern) == expected, pattern


def test_one_that_starts_or_has_a_slash_counts_from_its_base(repository: Path) -> None:
    for pattern in ("/a.b", "/*.sql", "src/z.sql", "/src/*", "deep/a", "/src/", "src/deep/", "src/**/", "./src/a",
                    "src//a"):  # fmt: skip
        assert with_inside(pattern) >= ours(pattern)
        if "//" not in pattern and not pattern.startswith("."):
            assert with_inside(pattern) == ignored(repository, pattern), pattern
    assert ours("./src/a") == ours("src//a") == ours("/src/./a") == {"src/a"} & set(FILES) | ours("src/a")


@pytest.mark.parametrize("pattern", ["", "/", "//", "./", "!a", "a/../b", "..", "[a", "a[", "a\\", "[[:what:]]", "a\0b",
                                     "x" * (LONGEST + 1), "[", "[]", "[!]", "[a/b]"])  # fmt: skip
def test_what_is_no_pattern_says_so(pattern: str) -> None:
    with pytest.raises(PatternUnreadable):
        parsed(pattern)


def test_letter_case_and_forms_of_letters_count_only_where_they_do_on_the_disk() -> None:
    assert covers(parsed("SRC/*.Sql", True), "src/a.sql") and not covers(parsed("SRC/*.Sql"), "src/a.sql")
    assert covers(parsed("[[:upper:]]*", True), "abc") and not covers(parsed("[[:upper:]]*"), "abc")
    assert covers(parsed("caf\u0065\u0301*", True), "caf\u00e9.md")


@pytest.mark.parametrize(
    ("pattern", "folder"),
    [("src/**/*.sql", "src"), ("*.sql", ""), ("src/deep/a*", "src/deep"), ("/src/x", "src"), ("s[r]c/x/y", ""),
     ("src/", ""), ("a/b/", "a/b"), ("./a//b/*", "a/b"), ("**/a", ""), ("a\\*/b", ""), ("a/b\\?/c", "a")],
)  # fmt: skip
def test_the_folder_that_all_is_in(pattern: str, folder: str) -> None:
    assert literal_prefix(pattern) == folder
    for file in ("src/a.sql", "src/deep/ab", "a/b/c", "src/x", "x/a"):
        if folder and covers(parsed(pattern), file):
            assert file.startswith(folder + "/")


_LETTERS = st.sampled_from(["a", "b", "*", "?", "[ab]", "[!a]"])
_SEGMENT = st.one_of(st.just("**"), st.lists(_LETTERS, min_size=1, max_size=4).map("".join))
_PATTERN = st.builds(
    lambda parts, front, back: front + "/".join(parts) + back,
    st.lists(_SEGMENT, min_size=1, max_size=4), st.sampled_from(["", "/"]), st.sampled_from(["", "/"]),
)  # fmt: skip
_PATH = st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=5).map("/".join)


@settings(max_examples=150, deadline=None)
@given(left=_PATTERN, right=_PATTERN, path=_PATH)
def test_two_patterns_overlap_where_one_path_is_covered_by_both(left: str, right: str, path: str) -> None:
    one, other = parsed(left), parsed(right)
    both = covers(one, path) and covers(other, path)
    meets = overlap(one, other)
    assert meets == overlap(other, one), "it does not matter which was first"
    assert meets or not both


TWO_LETTERS = ["a", "b", "aa", "ab", "ba", "bb"]
SMALL = ["/".join(parts) for depth in (1, 2, 3) for parts in itertools.product(TWO_LETTERS, repeat=depth)]


@settings(max_examples=150, deadline=None)
@given(left=st.lists(st.sampled_from(["a", "*", "?", "**", "b*", "ab"]), min_size=1, max_size=2).map("/".join),
       right=st.lists(st.sampled_from(["b", "*", "a?", "**", "*a"]), min_size=1, max_size=2).map("/".join))  # fmt: skip
def test_two_patterns_that_overlap_have_a_path_in_common(left: str, right: str) -> None:
    """Of patterns so small every possible meeting shows in paths of two letters and three names."""
    one, other = parsed(left), parsed(right)
    assert overlap(one, other) == any(covers(one, path) and covers(other, path) for path in SMALL), (left, right)


@settings(max_examples=120, deadline=None)
@given(pattern=_PATTERN, path=_PATH)
def test_a_path_is_a_pattern_that_covers_only_itself(pattern: str, path: str) -> None:
    segments = parsed(pattern)
    assert overlap(segments, of_path(path)) == overlap(of_path(path), segments) == covers(segments, path)
    if any(covers(segments, f"{path}/{rest}") for rest in ("a", "b", "a/b", "ab/a/c")) or covers(segments, path):
        assert overlap(segments, of_path(path, deep=True))


@settings(max_examples=80, deadline=None)
@given(pattern=_PATTERN, path=_PATH)
def test_going_down_name_by_name_comes_to_the_same(pattern: str, path: str) -> None:
    segments = parsed(pattern)
    places = wildmatch.beginning(segments)
    for name in path.split("/"):
        places = wildmatch.step(segments, places, name)
    assert (len(segments) in places) == covers(segments, path)


HOSTILE = [
    "*a" * (LONGEST // 2), "**/" * (LONGEST // 3) + "a", "*/" * (LONGEST // 2), "[a-z]*" * (LONGEST // 6),
    "?*" * (LONGEST // 2), "a*" * (LONGEST // 2 - 1) + "b", "**/a*" * (LONGEST // 5) + "/b", "[!" + "a-z" * 160 + "]",
    "*" * LONGEST, "a/" * (LONGEST // 2 - 1) + "*", "*" + "a" * 120 + "?" + "a" * 120 + "b*", "*" + "a?" * 120 + "b*",
    "*?" + "?a" * 120 + "c*",
]  # fmt: skip


@pytest.mark.parametrize("pattern", HOSTILE)
def test_no_pattern_takes_long(pattern: str) -> None:
    """Processor time, since a busy machine is not the pattern's fault; the bounds are those of a slow one."""
    paths = ["a" * 255, "/".join(["a" * 254] * 16), "/".join("a" * 2000), "a" * 4096]
    begun = time.process_time()
    segments = parsed(pattern)
    for path in paths:
        covers(segments, path)
    assert time.process_time() - begun < 1.0
    for other in (*HOSTILE[:3], *HOSTILE[-2:]):
        begun = time.process_time()
        overlap(segments, parsed(other))
        assert time.process_time() - begun < 2.0, other

"""The files of apply_patch texts: examples of the real Codex's behaviour, and properties of any text."""

import json
import os.path
import shlex
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.altered import Listening
from support.fixtures import time_limit
from support.requirement import requirement
from support.sessions import hook_core, new_session, peer_locks, start

from swarm_hook_core import patch
from swarm_hook_core.check import Writes
from swarm_hook_core.config import RuntimeConfig, changes_in_patch
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.opaque_calls import patched
from swarm_hook_core.patch import PatchUnreadable, codex_patch, patch_changes, patch_paths, patches_in
from swarm_hook_core.shell import effects_of

pytestmark = pytest.mark.slow

ADD = "*** Add File: n\n+hi\n"
UPDATE = "*** Update File: f\n@@\n-x\n+z\n"


def patch_texts(tool_input: object) -> list[str]:
    return list(dict.fromkeys(text for _directory, text in patches_in(tool_input)))


def envelope(*hunks: str) -> str:
    return "*** Begin Patch\n" + "".join(hunks) + "*** End Patch\n"


PATCH = envelope(ADD)


@pytest.mark.parametrize(
    ("hunks", "changes"),
    [
        (ADD, "n replace"),
        (UPDATE, "f edit"),
        ("*** Delete File: g\n", "g remove"),
        (ADD + UPDATE + "*** Delete File: g\n", "n replace, f edit, g remove"),
        ("*** Update File: f\n*** Move to: d/m\n@@\n-x\n+z\n", "f remove, d/m replace"),
        # Moved onto itself, however it is spelled, it is gone.
        ("*** Update File: f\n*** Move to: f\n@@\n-x\n+z\n", "f remove"),
        ("*** Update File: f\n*** Move to: ./f\n@@\n-x\n+z\n", "f remove, ./f replace"),
        ("*** Update File: f\n*** Move to: f\n@@\n-x\n+z\n" + UPDATE, "f remove"),
        ("*** Update File: f\n*** Move to: f\n@@\n-x\n+z\n*** Add File: f\n+1\n", "f replace"),
        ("*** Move File: a -> b\n", "a remove, b replace"),
        ("*** Move File: a\n", "a remove"),
        ("*** Update File: f\n*** End of File\n*** Move to: m\n@@\n-x\n+z\n", "f remove, m replace"),
        ("*** Environment ID: local\n" + ADD, "n replace"),
        # For a file that is named more than once, its last change.
        (UPDATE + UPDATE, "f edit"),
        (UPDATE + "*** Delete File: f\n", "f remove"),
        ("*** Delete File: f\n*** Add File: f\n+1\n", "f replace"),
        ("*** Add File: f\n+1\n" + UPDATE, "f replace"),
        (ADD + UPDATE + UPDATE + "*** Delete File: n\n", "n remove, f edit"),
        ("*** Add File: a\0b\n+1\n" + ADD, "n replace"),  # a path that no file can have is left out
        # Of several envelopes all are read, without the text between them.
        (ADD + "*** End Patch\n*** Add File: between\n+1\n*** Begin Patch\n" + UPDATE, "n replace, f edit"),
        ("", ""),
    ],
)
@requirement("P-15")
def test_each_file_is_changed_replaced_or_removed(hunks: str, changes: str) -> None:
    found = patch_changes(envelope(hunks))
    assert ", ".join(map(" ".join, found)) == changes
    assert patch_paths(envelope(hunks)) == [path for path, _how in found]


@pytest.mark.parametrize(
    ("spelled", "path"),
    [
        ("a b \t\u2003", "a b"),
        ("  a", "  a"),  # one blank belongs to the header, the others to the name
        ("/abs/./x//y/../z", "/abs/./x//y/../z"),
        ("~/n", "~/n"),
        ("$HOME/%41?q#h", "$HOME/%41?q#h"),
        ("a\tb\rc", "abc"),  # Codex loses both on its way to the file system
        ("a\x1f", "a\x1f"),  # a blank to Python, not to Codex
        ("a\u2028b", "a\u2028b"),
        ("n -> m", "n -> m"),
        ("*** Add File: x", "*** Add File: x"),
    ],
)
def test_a_path_is_what_codex_makes_of_its_spelling(spelled: str, path: str) -> None:
    assert patch_paths(envelope(f"*** Add File: {spelled}\n+1\n")) == [path]


@pytest.mark.parametrize(
    "text",
    [
        PATCH.replace("\n", "\r\n"),
        PATCH.replace("\n", "\r\r\n"),
        "\n \t\n" + PATCH + "\n\n",
        "  *** Begin Patch \u00a0\n\t*** Add File: n\n+hi\n \u3000*** End Patch\t",
        "<<EOF\n" + PATCH + "EOF",
        "<<'EOF'\n" + PATCH + "EOF\n",
        '<<"EOF"\r\n' + PATCH.replace("\n", "\r\n") + "EOF",
        "apply_patch <<'X'\n" + PATCH + "X\n",
        "here is the patch:\n```\n" + PATCH + "```\n",
        PATCH.removesuffix("*** End Patch\n"),
    ],
    ids=["crlf", "crcrlf", "blank-lines", "padded", "heredoc", "quoted", "double", "command", "fenced", "cut-short"],
)
def test_wrapping_and_padding_do_not_hide_the_patch(text: str) -> None:
    assert patch_paths(text) == ["n"]


@pytest.mark.parametrize(
    "line",
    [
        "+*** Add File: t",
        "-*** Delete File: t",
        " *** Update File: t",
        "  *** Add File: t",
        "\t*** Add File: t",
        "@@ *** Add File: t",
        " *** Move to: t",
        "+*** End Patch",
        " *** End Patch",
        "+*** Begin Patch",
        " *** Begin Patch",
        "+x\r*** Add File: t",
        "+x\u2028*** Add File: t",
        "+x\x0b*** Add File: t",
        "*** add file: t",
        "*** Add File:t",
        "***  Add File: t",
    ],
)
def test_a_line_that_looks_like_a_header_inside_an_update_is_text(line: str) -> None:
    assert patch_paths(envelope(UPDATE + line + "\n", ADD)) == ["f", "n"]


@pytest.mark.parametrize("indent", [" ", "   ", "\t", "\u00a0\u2003"])
@pytest.mark.parametrize("before", [ADD, "*** Delete File: g\n", "*** Environment ID: e\n", ""])
def test_an_indented_header_is_a_header_where_there_is_no_context_to_be(indent: str, before: str) -> None:
    assert patch_paths(envelope(before, indent + "*** Delete File: t\n"))[-1] == "t"


@pytest.mark.parametrize(
    "text",
    [
        *("", "hello", ADD, "+*** Begin Patch\n" + ADD, "*** begin patch\n" + ADD, "\0", "\ud800"),
        *map(envelope, ("*** Copy File: a -> b\n", "hello\n", "*** Add File:\n+1\n")),
    ],
)
def test_a_text_without_an_envelope_or_with_one_that_names_no_file_is_unreadable(text: str) -> None:
    with pytest.raises(PatchUnreadable):
        patch_paths(text)


@pytest.mark.parametrize(
    "tool_input",
    [
        PATCH,
        *({key: PATCH} for key in ("command", "input", "patch", "text", "arguments")),
        {"arguments": json.dumps({"input": PATCH})},
        {"arguments": {"patch": PATCH}},
        json.dumps(PATCH),
        ["apply_patch", PATCH],
        ["/opt/bin/applypatch", PATCH],
        {"command": ["apply_patch", PATCH]},
        {"command": json.dumps(["apply_patch", PATCH])},
        {"command": ["bash", "-lc", "apply_patch <<'EOF'\n" + PATCH + "EOF\n"]},
        [PATCH],
        {"command": 3, "input": None, "patch": PATCH},
    ],
)
@requirement("P-15")
def test_the_patch_is_found_in_every_shape_of_input(tool_input: object) -> None:
    assert [patch_paths(text) for text in patch_texts(tool_input)] == [["n"]]


@pytest.mark.parametrize(
    "tool_input",
    [
        None,
        7,
        True,
        "",
        "hello",
        [],
        {},
        {"other": PATCH},
        ["echo", PATCH],
        ["bash", "-lc", "cat > x <<E\n" + PATCH + "E\n"],
    ],
)
def test_other_inputs_hold_no_patch(tool_input: object) -> None:
    assert patch_texts(tool_input) == []


def test_input_nested_without_end_is_let_go() -> None:
    tool_input: dict[str, Any] = {}
    tool_input["command"] = tool_input
    assert patch_texts(tool_input) == []
    assert patch_texts('{"command":' * 100_000 + '"*** Begin Patch"') != ["*** Begin Patch"]


HERE = "<<'EOF'\n" + PATCH + "EOF\n"


CODEX = RuntimeConfig("codex", "CODEX", "swarm-codex", {"apply_patch"}, extract_changes=changes_in_patch)


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    for name in ("sub", "a/b", "a/c", "a b", "home/x"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def applied(command: str, folder: Path) -> set[str]:
    """Return the certain writes of `command`, read as Codex itself or as a shell does; seen from `folder`."""
    found = [(place, path) for place, path, _how in patched("Bash", {"command": command}, str(folder))]
    effects = effects_of(command, str(folder), {"HOME": str(folder / "home")})
    found += [(write.folder, write.path) for write in effects.writes]
    return {os.path.relpath(os.path.join(*one), folder) for one in found}


@pytest.mark.parametrize(
    "command",
    [
        "apply_patch " + HERE,
        "applypatch " + HERE,
        "apply_patch<<EOF\n" + PATCH + "EOF",
        "apply_patch <<\\EOF\n" + PATCH + "EOF\n",
        "apply_patch <<'E OF'\n" + PATCH + "E OF\n",
        "apply_patch <<-EOF\n\t" + PATCH.replace("\n", "\n\t") + "EOF\n",
        ("apply_patch " + HERE).replace("\n", "\r\n"),
        "apply_patch <<'EOF'\n" + PATCH,
        "apply_patch <<'EOF'\n" + PATCH + "  EOF\n",
        "\n\n A=1 B=$(x) apply_patch \\\n - 2>&1 " + HERE,
        "# why\napply_patch " + HERE + "echo done",
        "set -e; apply_patch " + HERE,
        "apply_patch '" + PATCH + "'",
        'apply_patch "' + PATCH + '"',
        "apply_patch $'" + PATCH.replace("\n", "\\n") + "'",
        "apply_patch <<< '" + PATCH + "'",
        "apply_patch < <(printf %s '" + PATCH + "')",
        "printf '%s\\n' '" + PATCH + "' | apply_patch",
        "printf '" + PATCH.replace("\n", "\\n") + "' | apply_patch",
        "printf '%s\\n' '*** Begin Patch' '*** Add File: n' '+hi' '*** End Patch' | apply_patch",
        "cat <<'EOF' | apply_patch\n" + PATCH + "EOF\n",
        'apply_patch "$(cat ' + HERE + ')"',
        "P='" + PATCH + '\'; apply_patch "$P"',
        "read -r -d '' P " + HERE + 'apply_patch "$P"',
        "cat > p " + HERE + "apply_patch < p",
        'bash -lc "apply_patch ' + HERE + '"',
        "sh <<'X'\napply_patch " + HERE + "X\n",
        'bash -c \'eval "$1"\' _ "apply_patch ' + HERE + '"',
        "sudo -u someone /usr/bin/apply_patch " + HERE,
        "codex --codex-run-as-apply-patch '" + PATCH + "'",
        "f() { apply_patch " + HERE + "}; f",
        "if true; then apply_patch " + HERE + "fi",
        "case x in x) apply_patch " + HERE + ";; esac",
        "(apply_patch <<'EOF')\n" + PATCH + "EOF\n",
        "{ apply_patch; } " + HERE,
        "echo `apply_patch " + HERE + "`",
        "echo $((1<<2)); apply_patch " + HERE,
        "(cd elsewhere && ls); apply_patch " + HERE,
        "cd elsewhere || apply_patch " + HERE,
        "cd elsewhere | apply_patch " + HERE,
    ],
)
@requirement("P-16")
def test_a_patch_that_a_command_applies_in_its_own_folder(command: str, ground: Path) -> None:
    assert applied(command, ground) - {"p"} == {"n"}


@pytest.mark.parametrize(
    ("before", "directory"),
    [
        ("cd sub && ", "sub"),
        ("cd sub; ", "sub"),
        ("cd sub\n", "sub"),
        ("cd sub&&\n", "sub"),
        ("cd 'a b' && ", "a b"),
        ('cd "a b" && ', "a b"),
        ("cd -- sub && ", "sub"),
        ("cd /abs/../x && ", "/x"),
        ("cd ln/.. && ", "."),
        ("cd a && cd b; cd ../c\n", "a/c"),
        ("cd a || exit 1\n", "a"),
        ("pushd a > /dev/null && ", "a"),
        ("X=1 cd a && Y=2 ", "a"),
        ("cd new && ", "new"),  # Codex makes folders
        ('cd "~/x" && ', "~/x"),
        ("true || cd a; ", "."),
        ("cd a || echo no; ", "a"),
        ("cd nowhere || echo no; ", "."),
        ("cd a || { echo no; exit 1; }; ", "a"),
        ("cd a || x | y\n", "a"),
        ("(cd a); ", "."),
        ("cd $HOME/x; ", "home/x"),
    ],
)
def test_a_patch_lands_where_the_cds_before_it_lead(before: str, directory: str, ground: Path) -> None:
    there = os.path.relpath(os.path.join(ground, directory, "n"), ground)
    assert applied(before + "apply_patch " + HERE, ground) == {there}


@pytest.mark.parametrize(("argument", "directories"), [("~/x", {"~/x", "home/x"}), ("a\\ b", {"a\\ b", "a b"})])
def test_a_directory_that_codex_and_a_shell_read_differently_counts_both_ways(
    argument: str, directories: set[str], ground: Path
) -> None:
    found = applied(f"cd {argument} && apply_patch " + HERE, ground)
    assert found == {directory + "/n" for directory in directories}


@pytest.mark.parametrize(
    ("before", "directory"),
    [
        ("", None),
        ("cd sub && ", "sub"),
        ("\n cd sub&&\n", "sub"),
        ("cd 'a && b' && ", "a && b"),
        ('cd "a b" && ', "a b"),
        ("cd ~ && ", "~"),
        ("cd a\\ b && ", "a\\ b"),
        ('cd "$HOME/x" && ', "/x"),
        ('cd "sub$UNKNOWN/deep" && ', "sub"),
        ('cd "$UNKNOWN/x${Y}z" && ', "/x"),
        ('cd "$(git rev-parse)/x" && ', "/x"),
    ],
)
@pytest.mark.parametrize("here", [HERE, HERE.rstrip(), "<<EOF\n" + PATCH, "<<-EOF\n\t" + PATCH + "\tEOF\n"])
def test_what_codex_runs_without_a_shell(before: str, directory: str | None, here: str) -> None:
    found = codex_patch(before + "apply_patch " + here)
    assert found is not None and (found[0], patch_paths(found[1])) == (directory, ["n"])


@pytest.mark.parametrize(
    "command",
    [
        'cd "$UNKNOWN" && apply_patch ' + HERE,
        "cd $UNKNOWN && apply_patch " + HERE,
        "cd -- sub && apply_patch " + HERE,
        "cd a b && apply_patch " + HERE,
        "cd sub; apply_patch " + HERE,
        "apply_patch " + HERE + "echo done",
        "x=1 apply_patch " + HERE,
        "cat " + HERE,
        "apply_patch '" + PATCH + "'",
    ],
)
def test_what_codex_gives_to_a_shell(command: str) -> None:
    assert codex_patch(command) is None


def test_each_of_several_patches_keeps_its_own_folder(ground: Path) -> None:
    other = "applypatch <<X\n" + envelope(UPDATE) + "X\n"
    assert applied("(cd a; apply_patch " + HERE + ")\n" + other, ground) == {"a/n", "f"}


@pytest.mark.parametrize(
    "command",
    [
        "",
        "ls",
        PATCH,
        "cat > x " + HERE,
        "cat > x " + HERE + "echo apply_patch",
        "cat > t.sh <<'X'\napply_patch " + HERE + "X\n",
        'bash -lc "cat > x ' + HERE + '" # apply_patch',
        "grep apply_patch x; tee y " + HERE,
        "git commit -m 'apply_patch " + PATCH + "'",
        "# apply_patch " + PATCH.replace("\n", "\n# "),
        "which apply_patch",
    ],
)
def test_a_patch_that_is_only_talked_about_is_none(command: str, ground: Path) -> None:
    assert applied(command, ground) <= {"x", "y", "t.sh"}


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("apply_patch < patch.txt", set()),
        ("apply_patch", set()),
        ("make_patch | apply_patch", set()),
        ('apply_patch "$(make_patch)" ' + HERE, set()),
        ("apply_patch <<A\n*** Begin Patch\nnonsense\n*** End Patch\nA\ntrue", set()),
        ("apply_patch <<A\n*** Begin Patch\nnonsense\n*** End Patch\nA\napply_patch " + HERE, {"n"}),
        ("apply_patch <<A\n*** Begin Patch\n" + ADD + "+$(make_lines)\n*** End Patch\nA\ntrue", {"n"}),
    ],
)
def test_what_cannot_be_read_of_a_patch_is_a_guess(command: str, names: set[str], ground: Path) -> None:
    assert applied(command, ground) == names
    assert "a patch that cannot be read yet" in [guess.why for guess in effects_of(command, str(ground), {}).guesses]


def test_a_check_reads_the_text_of_its_patch_once(listening: Listening, repo: Path) -> None:
    me = new_session()
    start("codex", me, repo)
    peer_locks(repo, repo / "f.md")
    read = listening(patch, "_read")
    core = hook_core("codex")
    for name, denied in (("g.md", False), ("f.md", True), ("h.md", False)):
        text = f"*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch\n"
        call = ToolCall("apply_patch", {"command": text}, me, str(repo))
        verdict = core.check(call)
        assert (verdict is not None and verdict.denial is not None) is denied, name
        assert [one.given[0] for one in read] == [text]
        read.clear()


def test_an_unreadable_patch_of_codex_s_own_is_an_error(ground: Path) -> None:
    with pytest.raises(PatchUnreadable):
        applied("apply_patch <<A\n*** Begin Patch\nnonsense\n*** End Patch\nA\n", ground)


BLANKS = st.text(" \t\u00a0\u2003\u3000\x85\x0b\x0c", max_size=3)
NAMES = (
    st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\n\r\t\0"), min_size=1, max_size=12)
    .filter(lambda name: name == name.strip() and " -> " not in name)
    .filter(lambda name: not name[-1].isspace())
)
CONTENT = st.one_of(
    st.text(st.characters(blacklist_characters="\n"), max_size=20),
    st.sampled_from(
        ["*** Add File: t", "*** End Patch", "*** Begin Patch", "*** Move to: t", "*** Delete File: t", "EOF"]
    ),
)
SOUP = st.sampled_from(
    [
        *"\n \t+-\0\ud800x'\")`\\#;|<&{(~",
        "\r\n",
        "@@",
        "$(",
        "$'",
        "<<-X",
        "cd ",
        "||",
        "$HOME",
        "((",
        "<<<",
        "bash -c ",
    ]
    + ["apply_patch ", "<<EOF\n", "\nEOF\n", "cd a && ", "*** ", "*** Begin Patch", "*** End Patch", "*** Add File: "]
    + ["*** Update File: a", "*** Move to: b", "*** Move File: a -> b"]
)
TEXTS = st.one_of(st.text(), st.lists(SOUP, max_size=40).map("".join))


@st.composite
def hunks(draw: st.DrawFn) -> tuple[str, list[str], bool]:
    """Draw a hunk without its indentation, its paths, and True if an indented line after it would be context."""
    kind, name, pad = draw(st.sampled_from(["add", "delete", "update", "move", "old"])), draw(NAMES), draw(BLANKS)
    lines = draw(st.lists(CONTENT, max_size=4))
    if kind == "add":
        return f"*** Add File: {name}{pad}\n" + "".join(f"+{line}\n" for line in lines), [name], False
    if kind == "delete":
        return f"*** Delete File: {name}{pad}\n", [name], False
    other = draw(NAMES)
    if kind == "old":
        return f"*** Move File: {name} -> {other}{pad}\n", [name, other], False
    body = "@@ " + "".join(draw(CONTENT)) + "\n" + "".join(draw(st.sampled_from(" +-")) + line + "\n" for line in lines)
    if kind == "update":
        return f"*** Update File: {name}{pad}\n{body}", [name], True
    return f"*** Update File: {name}{pad}\n*** Move to: {other}{pad}\n{body}", [name, other], True


@given(st.lists(hunks(), min_size=1, max_size=6), st.data())
@settings(deadline=None)
@requirement("P-15")
def test_a_generated_patch_names_exactly_its_paths(
    parts: list[tuple[str, list[str], bool]], data: st.DataObject
) -> None:
    text, after_update = data.draw(BLANKS) + "*** Begin Patch" + data.draw(BLANKS) + "\n", False
    for hunk, _, is_update in parts:
        text += ("" if after_update else data.draw(BLANKS)) + hunk
        after_update = is_update
    text += "*** End Patch" + data.draw(BLANKS)
    if data.draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    opening, closing = data.draw(
        st.sampled_from([("", ""), ("<<EOF\n", "\nEOF"), ("\n\n", "\n\n"), ("apply_patch <<'E'\n", "\nE\n")])
    )
    expected = list(dict.fromkeys(path for _, paths, _ in parts for path in paths))
    assert patch_paths(opening + text + closing) == expected


@given(TEXTS)
@settings(deadline=None, max_examples=300)
def test_no_text_makes_the_parser_fail_in_another_way(text: str) -> None:
    try:
        paths = patch_paths(text)
    except PatchUnreadable:
        return
    assert len(set(paths)) == len(paths)
    assert not any(char in path for path in paths for char in "\0\n\r\t")


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.dictionaries(
                st.one_of(st.sampled_from(["command", "input", "patch", "text", "arguments"]), st.text()),
                inner,
                max_size=4,
            ),
        ),
    )
)
@settings(deadline=None)
def test_no_tool_input_makes_the_search_fail(tool_input: object) -> None:
    assert all("*** Begin Patch" in text for text in patch_texts(tool_input))


@given(TEXTS)
@settings(deadline=None, max_examples=500)
def test_no_command_makes_the_search_for_codex_s_own_fail(command: str) -> None:
    found = codex_patch(command)
    assert found is None or "*** Begin Patch" in found[1]


@given(st.lists(hunks(), min_size=1, max_size=3), st.sampled_from(["argument", "here", "shell", "pipe"]))
@settings(deadline=None)
def test_any_patch_is_found_in_any_quoting(parts: list[tuple[str, list[str], bool]], form: str) -> None:
    text = envelope(*(hunk for hunk, _, _ in parts))
    command = {
        "argument": "apply_patch " + shlex.quote(text),
        "here": "apply_patch <<'_END_'\n" + text + "_END_\n",
        "shell": "bash -lc " + shlex.quote("apply_patch <<'_END_'\n" + text + "_END_\n"),
        "pipe": "cat <<'_END_' | apply_patch\n" + text + "_END_\n",
    }[form]
    expected = list(dict.fromkeys(path for _, paths, _ in parts for path in paths))
    assert [write.path for write in effects_of(command, "/nowhere", {}).writes] == expected


MANY = 300_000
SLOWEST = 10.0  # seconds; linear reading takes a tenth of it on a busy machine, any other takes hours


@pytest.mark.parametrize(
    "text",
    [
        "*** Add File: a\n" * MANY,
        "*** \n" * MANY,
        " *** Add File: x" * MANY,
        " " * MANY * 10 + "*** Add File: a",
        "*** Begin Patch\n" * MANY,
        "+*** x\n" * MANY,
    ],
    ids=["headers", "stars", "one-line", "indent", "begins", "text"],
)
@pytest.mark.sampled
def test_time_grows_with_the_size_and_no_faster(text: str) -> None:
    started = time.perf_counter()
    patch_paths("*** Begin Patch\n*** Delete File: d\n" + text)
    assert time.perf_counter() - started < time_limit(SLOWEST)


@pytest.mark.parametrize("piece", ["a ", "$( ", "`", "'", '"$(', "$a", "cd ~ &&", "<<A\n", "\\", "\n"])
def test_a_hostile_command_takes_no_longer_than_its_size_allows(piece: str) -> None:
    started = time.perf_counter()
    for argument in (piece * MANY, '"' + piece * MANY + '"'):
        codex_patch(f"cd {argument} && apply_patch " + HERE)
    assert time.perf_counter() - started < time_limit(SLOWEST)


def test_a_patch_in_a_shell_is_read_once_by_all_that_ask(tmp_path: Path, monkeypatch, listening: Listening) -> None:
    """By its files for locks, by the reader of shell commands, and for its traces: of a large one that takes its time."""
    command = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: n\n+x\n*** End Patch\nEOF\n"
    monkeypatch.setattr(patch, "_last", (None, []))
    read = listening(patch, "_read")
    folder, given = str(tmp_path), {"command": command}
    writes = Writes(CODEX, ToolCall("Bash", given, cwd=folder))
    assert writes.named == [(folder, "n")]
    assert [write.path for write in effects_of(command, folder).writes] == ["n"]
    assert [path for _folder, path, _how in patched("Bash", given, folder)] == ["n"] and len(read) == 1

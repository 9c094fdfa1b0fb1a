"""The patch parser against the real thing: the Codex binary, called by the name apply_patch.

All files that it writes in a scratch folder must be among the paths that we named beforehand; and for an accepted
patch, we must not have named an untouched file.
"""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from swarm_hook_core.patch import PatchUnreadable, codex_patch, patch_paths
from swarm_hook_core.shell import effects_of

FILES = {"f": "x\n", "g": "y\n*** Add File: t\n", "a b": "x\n", "d/h": "x\n"}
PATIENCE = 30.0  # seconds for one run of the binary; 10 ms are normal
ONE_BINARY = settings(
    max_examples=int(os.environ.get("SWARM_E2E_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Applied(NamedTuple):
    accepted: bool
    touched: set[str]  # absolute paths created, changed or removed
    listed: set[str]  # absolute paths in the success message, including files rewritten unchanged
    message: str


class Codex:
    """The binary under its other name, in a private home."""

    def __init__(self, binary: Path, private: Path) -> None:
        self.programs, self.home, self.private = private / "bin", private / "home", private
        self.home.mkdir()
        self.programs.mkdir()
        for name in ("apply_patch", "applypatch"):
            (self.programs / name).symlink_to(binary)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self.private) as folder:
            for name, text in FILES.items():
                path = Path(folder, name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            Path(folder, "ln").symlink_to("d")
            yield Path(folder)

    def run(self, argv: list[str], given: str, folder: Path) -> Applied:
        before = _contents(folder)
        done = subprocess.run(
            argv,
            input=given.encode(),
            cwd=folder,
            env={"PATH": f"{self.programs}:/usr/bin:/bin", "HOME": str(self.home)},
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        after = _contents(folder)
        out = done.stdout.decode()
        names = [line[2:] for line in out.split("\n") if line[:2] in ("A ", "M ", "D ")]
        return Applied(
            done.returncode == 0,
            {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)},
            {_absolute(folder, name.replace("\t", "").replace("\r", "")) for name in names},
            out + done.stderr.decode(),
        )

    def apply(self, text: str, folder: Path) -> Applied:
        return self.run(["apply_patch"], text, folder)


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _absolute(folder: Path, name: str) -> str:
    return os.path.normpath(os.path.join(folder, name))


@pytest.fixture(scope="module")
def codex(tmp_path_factory: pytest.TempPathFactory) -> Codex:
    modules = os.environ.get("SWARM_E2E_CLIENTS")
    if not modules:
        pytest.fail("SWARM_E2E_CLIENTS names no folder with the real clients: run `make e2e`", pytrace=False)
    found = sorted(Path(modules).glob("@openai/codex-*/vendor/*/bin/codex"))
    if not found:
        pytest.fail(f"no Codex binary below {modules}: run `make e2e`", pytrace=False)
    return Codex(found[0].resolve(), tmp_path_factory.mktemp("codex"))


def check(codex: Codex, text: str, folder: Path) -> Applied:
    try:
        named = {_absolute(folder, path) for path in patch_paths(text)}
    except PatchUnreadable:
        named = set()
    applied = codex.apply(text, folder)
    assert applied.touched <= named, f"written but not named: {applied.touched - named}\n{text!r}"
    if applied.accepted:
        assert named <= applied.touched | applied.listed, f"named but text to Codex: {named - applied.listed}\n{text!r}"
    return applied


BLANKS = st.text(" \t\r\u00a0\u2003\u2028\x85\x0b\x0c", max_size=2)
INDENTS = st.sampled_from(["", "", "", "", " ", "  ", "\t", "\u00a0", "\x1f", "\u200b"])
NEW_NAMES = st.one_of(
    st.sampled_from(
        ["n", "d/n", "./n", "d/../n", "deep/er/n", "~", "~/n", "n -> m", "$HOME", "n:m", "//n".lstrip("/"), "ln/../n"]
    ),
    st.text("nm \t\r\x0b\u00a0\u2028\x1f\x85%#?\\*+->:é@", min_size=1, max_size=5),
)
OLD_NAMES = st.sampled_from(["f", "f", "g", "a b", "d/h", "./f", "d/../f", "f\t", "a\t b", "absent"])
HEADER_LIKE = st.sampled_from(
    [
        *(
            "*** Add File: t",
            "*** Delete File: g",
            "*** Update File: g",
            "*** Move to: t",
            "*** End Patch",
            "*** Begin Patch",
        ),
        *(
            "*** End of File",
            "*** Environment ID: e",
            "*** Move File: f -> t",
            "@@",
            "@@ x",
            "",
            "x",
            "y",
            "EOF",
            "*** add file: t",
        ),
        *("x\r*** Add File: t", "x\u2028*** Add File: t", "***  Add File: t"),
    ]
)
ODD_LINES = st.tuples(st.sampled_from(["", "", " ", "+", "-", "\t", "  ", "\u00a0"]), HEADER_LIKE).map("".join)


@st.composite
def hunk_lines(draw: st.DrawFn) -> list[str]:
    kind = draw(st.sampled_from(["add", "add", "delete", "update", "update", "move"]))
    if kind == "add":
        added = draw(st.lists(st.one_of(HEADER_LIKE.map("+".__add__), st.just("+x")), max_size=3))
        return ["*** Add File: " + draw(NEW_NAMES), *added]
    name = draw(OLD_NAMES)
    if kind == "delete":
        return ["*** Delete File: " + name]
    move = ["*** Move to: " + draw(NEW_NAMES)] if kind == "move" else []
    if draw(st.booleans()):
        move.insert(0, "*** End of File")
    old = FILES.get(name.replace("\t", "").replace("./", "").replace("d/../", ""), "x\n").splitlines()
    change = draw(st.sampled_from([[" " + line for line in old], ["-" + line for line in old]]))
    return ["*** Update File: " + name, *move, "@@", *change, *draw(st.lists(HEADER_LIKE.map("+".__add__), max_size=2))]


@st.composite
def patches(draw: st.DrawFn) -> str:
    """Patches that Codex mostly accepts, with up to two lines put in that may mean anything."""
    lines: list[str] = []
    for hunk in draw(st.lists(hunk_lines(), min_size=1, max_size=4)):
        hunk[0] = draw(INDENTS) + hunk[0]
        lines += [line + draw(BLANKS) if line.startswith("***") else line for line in hunk]
    for odd in draw(st.lists(ODD_LINES, max_size=draw(st.sampled_from([0, 0, 1, 2])))):
        lines.insert(draw(st.integers(0, len(lines))), odd)
    lines = [draw(BLANKS) + "*** Begin Patch" + draw(BLANKS), *lines, draw(INDENTS) + "*** End Patch" + draw(BLANKS)]
    opening, closing = draw(
        st.sampled_from([("", ""), ("", "\n"), ("\n \n", "\n\n"), ("<<EOF\n", "\nEOF"), ("<<'EOF'\n", "\nxEOF\n")])
    )
    return opening + draw(st.sampled_from(["\n", "\n", "\n", "\r\n", "\r\r\n"])).join(lines) + closing


@given(patches())
@ONE_BINARY
def test_codex_writes_no_file_that_we_did_not_name(codex: Codex, text: str) -> None:
    with codex.scratch() as folder:
        applied = check(codex, text, folder)
    event("accepted" if applied.accepted else "refused" + (" after writing" if applied.touched else ""))


@pytest.mark.parametrize(
    "body",
    [
        "*** Add File: n\n+1\n *** Delete File: g\n",
        "*** Add File: n\n+1\n\t*** Update File: f\n*** Move to: m\n@@\n-x\n+z\n",
        "*** Update File: g\n@@\n y\n *** Add File: t\n",
        "*** Update File: f\n*** End of File\n*** Move to: m\n@@\n-x\n+z\n",
        "*** Update File: f\n*** Move to: g\n@@\n-x\n+z\n",
        "*** Update File: f\n*** Move to: f\n@@\n-x\n+z\n",
        "*** Update File: a\t b\r\n@@\n-x\n+z\n",
        "*** Environment ID: e\n  *** Add File: n\tm\n+1\n",
        "*** Add File: {folder}/x//y/../n\n+1\n",
        "*** Add File: ln/../n\n+1\n",
        "*** Delete File: f\n*** Add File: f\n*** Delete File: f\n",
    ],
)
def test_codex_accepts_what_we_know_it_to_accept(codex: Codex, body: str) -> None:
    with codex.scratch() as folder:
        applied = check(codex, "*** Begin Patch\n" + body.format(folder=folder) + "*** End Patch\n", folder)
    assert applied.accepted, applied.message
    assert applied.touched | applied.listed


def test_a_refused_patch_may_have_written_its_first_files(codex: Codex) -> None:
    with codex.scratch() as folder:
        body = "*** Add File: n\n+1\n*** Update File: f\n@@\n-not there\n+z\n"
        applied = check(codex, "*** Begin Patch\n" + body + "*** End Patch\n", folder)
        assert not applied.accepted
        assert applied.touched == {str(folder / "n")}


@pytest.mark.parametrize(
    "body", ["*** Move File: f -> m\n", "*** add file: n\n+1\n", "*** Add File:n\n+1\n", "\n*** Delete File: f\n"]
)
def test_codex_still_refuses_what_we_take_it_to_refuse(codex: Codex, body: str) -> None:
    with codex.scratch() as folder:
        applied = check(codex, "*** Begin Patch\n" + body + "*** End Patch\n", folder)
    assert not applied.accepted


PATCH = '*** Begin Patch\n*** Add File: n\n+it\'s "$x" `y` \\n\n*** Delete File: h\n*** End Patch\n'
PLAIN = "*** Begin Patch\n*** Add File: n\n+hi\n*** End Patch\n"
HERE = f"<<'END'\n{PATCH}END\n"
FORMS = [
    f"apply_patch {HERE}",
    f"apply_patch <<-'END'\n\t{PATCH}\tEND\n",
    f"apply_patch {shlex.quote(PATCH)}",
    f"apply_patch <<< {shlex.quote(PATCH)}",
    f"cat <<'END' | applypatch\n{PATCH}END\n",
    f'apply_patch "$(cat {HERE})"',
    f'apply_patch "{PLAIN}"',
    "apply_patch $'" + PLAIN.replace("\n", "\\n") + "'",
    "printf '" + PLAIN.replace("\n", "\\n") + "' | apply_patch",
    "printf '%s\\n' '*** Begin Patch' '*** Add File: n' '+hi' '*** End Patch' | apply_patch",
    f'P={shlex.quote(PATCH)}; apply_patch "$P"',
    f"cat > p {HERE}apply_patch < p",
    f"bash -c {shlex.quote('apply_patch ' + HERE)}",
    f"bash -c 'apply_patch \"$1\"' _ {shlex.quote(PATCH)}",
    f"sh <<'X'\napply_patch {HERE}X\n",
    f"eval {shlex.quote('apply_patch ' + HERE)}",
    f"command env A=1 apply_patch {HERE}",
    f"f() {{ apply_patch {HERE}}}; f",
    f"if true; then apply_patch {HERE}fi",
    f"case x in x) apply_patch {HERE};; esac",
    f"(apply_patch <<'END')\n{PATCH}END\n",
    f"{{ apply_patch; }} {HERE}",
    f'echo "`apply_patch <<END\n{PLAIN}END\n`"',
    f'echo $((1<<2)) $(echo "a)b"); apply_patch {HERE}',
    f"cat <<'A' <<'END' | apply_patch\nignored 'quote\nA\n{PATCH}END\n",
]
PREFIXES = [
    *(
        "",
        "cd d && ",
        "cd d; ",
        "cd d\n",
        "cd d || exit 1\n",
        "cd d > /dev/null && ",
        "cd -- d; ",
        "cd 'd'; ",
        'cd "d/../d"; ',
    ),
    *(
        "cd ~ && cd - && cd d\n",
        "(cd d); ",
        "cd d | true; ",
        "cd nowhere || ",
        "cd d && cd ..; ",
        "pushd d >/dev/null; ",
    ),
    *("cd $PWD/d; ", 'cd "$(pwd)"; ', "true || cd d; ", "set -e; # it's a note\n", "x=(1 2); [[ a < b ]] && "),
]


@pytest.mark.parametrize(
    "form",
    [form if number % 4 == 0 else pytest.param(form, marks=pytest.mark.thorough) for number, form in enumerate(FORMS)],
)
def test_what_a_shell_hands_to_apply_patch_is_found(codex: Codex, form: str) -> None:
    with codex.scratch() as folder:
        touched, in_doubt = shell_touched(codex, form, folder)
    assert touched, f"nothing was applied by {form!r}"
    assert not in_doubt


@given(st.sampled_from(PREFIXES), st.sampled_from(FORMS), st.sampled_from(["", "\necho done", "\n# note"]))
@ONE_BINARY
def test_what_a_shell_applies_elsewhere_is_found_there(codex: Codex, prefix: str, form: str, suffix: str) -> None:
    with codex.scratch() as folder:
        shell_touched(codex, prefix + form + suffix, folder)


def shell_touched(codex: Codex, command: str, folder: Path) -> tuple[set[str], set[str]]:
    """Return the files that `command` writes, and those of our prediction that are only possible."""
    effects = effects_of(command, str(folder), {"HOME": str(codex.home), "PWD": str(folder), "SHELL": "/bin/bash"})
    named = {_absolute(Path(write.folder), write.path) for write in effects.writes}
    patch = codex_patch(command)
    if patch:
        named |= {_absolute(folder / (patch[0] or ""), path) for path in patch_paths(patch[1])}
    touched = codex.run(["bash", "-c", command], "", folder).touched - {str(folder / "p"), str(folder / "d/p")}
    in_doubt = touched - named
    possible = effects.guesses or in_doubt <= {tree.root for tree in effects.trees}
    assert possible, f"written but not named: {in_doubt}; named {named}\n{command}"
    return touched, in_doubt

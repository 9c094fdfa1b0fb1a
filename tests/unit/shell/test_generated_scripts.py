"""Generated shell programs, really run: the analysis has found every change."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from corpora import sandbox
from corpora.finding import met
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.files import files_at

from swarm_hook_core.shell import effects_of

pytestmark = pytest.mark.slow

FOLDERS = ["a", "a/b", "c d", "é"]
NAMES = [
    "x.txt",
    "two words.txt",
    "it's",
    'say "hi"',
    "$dollar",
    "back\\slash",
    "star*",
    "-dash",
    "日本",
    "~",
    "#hash",
    "a;b",
    "p|q&r",
]
SEVERAL = 6  # programs that one bash runs


def single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def double(text: str) -> str:
    return '"' + "".join("\\" + letter if letter in '"$\\`' else letter for letter in text) + '"'


def escaped(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "/._" else "\\" + letter for letter in text)


def ansi(text: str) -> str:
    return (
        "$'"
        + "".join(f"\\x{byte:02x}" if byte > 126 or chr(byte) in "'\\" else chr(byte) for byte in text.encode())
        + "'"
    )


def by_variable(text: str) -> str:
    return f'"${{v{sum(text.encode()) % 7}:-{_in_braces(text)}}}"'


def _in_braces(text: str) -> str:
    return "".join("\\" + letter if letter in '"$\\`}' else letter for letter in text)


quoting = st.sampled_from([
    single, double, escaped, ansi, by_variable,
    lambda text: double(text[: len(text) // 2]) + single(text[len(text) // 2 :]),
    lambda text: f'"$(printf %s {single(text)})"',
])  # fmt: skip
files = st.builds(lambda folder, name: f"{folder}/{name}", st.sampled_from([".", *FOLDERS]), st.sampled_from(NAMES))
words = st.builds(lambda quote, path: quote(path), quoting, files)
folders = st.builds(lambda quote, path: quote(path), quoting, st.sampled_from(FOLDERS))
# A folder is not put into itself: that would end half-way.
above, below = (
    st.builds(lambda quote, path: quote(path), quoting, st.sampled_from(some)) for some in (FOLDERS[:2], FOLDERS[2:])
)
texts = st.sampled_from(["hi", "a > b", "$(x)", "it's", "rm -rf a", '"', "EOF ", "<<EOF", "`x`", "\\"])


def here_document(delimiter: str, path: str, text: str, tabs: bool) -> str:
    dash, tab = ("-", "\t") if tabs else ("", "")
    plain = delimiter.strip("'\"\\")
    body = text if plain != delimiter else text.replace("\\", "\\\\").replace("$", "\\$").replace("`", "\\`")
    return f"cat <<{dash}{delimiter} > {path}\n{tab}{body}\n{tab}{plain}\n"


simple = st.one_of(
    st.builds(
        lambda path, text, mark: f"echo {single(text)} {mark} {path}",
        words,
        texts,
        st.sampled_from([">", ">>", ">|", "&>", "1>"]),
    ),
    st.builds(lambda path, text: f"{{ echo {double(text)}; echo 2; }} > {path}", words, texts),
    st.builds(lambda path, text: f"echo {single(text)} | tee -- {path} > /dev/null", words, texts),
    st.builds(lambda path: f"touch -- {path}", words),
    st.builds(lambda path: f"rm -f -- {path}", words),
    st.builds(lambda path: f"rm -rf -- {path}", folders),
    st.builds(lambda one, two: f"cp -f -- {one} {two} 2>/dev/null", words, words),
    st.builds(lambda one, two: f"mv -f -- {one} {two} 2>/dev/null", words, words),
    st.builds(lambda one, two: f"cp -r -- {one} {two} 2>/dev/null", above, below),
    st.builds(lambda one, two: f"mv -- {one} {two} 2>/dev/null", above, below),
    st.builds(lambda path: f"sed -i 's/a/b/' -- {path} 2>/dev/null", words),
    st.builds(lambda path: f"mkdir -p -- {path}", folders),
    st.builds(lambda path: f"truncate -s 0 -- {path}", words),
    st.builds(
        here_document, st.sampled_from(["EOF", "'EOF'", '"EOF"', "\\EOF", "'END OF'"]), words, texts, st.booleans()
    ),
    st.builds(
        lambda names: f"find . -name {single(names)} -exec touch {{}} +",
        st.sampled_from(["x*", "*i*", "[!-]*", "it's"]),
    ),
    st.builds(lambda path: f"printf '%s\\0' {path} | xargs -0 touch --", words),
    st.builds(lambda folder: f'for w in {folder}/*; do echo x >> "$w"; done', folders),
    st.builds(
        lambda paths: f'all=({" ".join(paths)}); touch -- "${{all[@]}}"', st.lists(words, min_size=1, max_size=3)
    ),
    st.builds(lambda path: f'read -r one <<< {path}; echo x > "$one"', words.filter(lambda word: "back" not in word)),
    st.builds(lambda folder: f"rm -f -- {folder}/*.txt {folder}/[i-t]*", folders),
    st.builds(lambda path: f"cat <(echo x > {path})", words),
    st.builds(lambda folder: f"touch -- {folder}/{{p,'q r'}}{{1..2}}", folders),
)


def nested(inner):
    body = st.lists(inner, min_size=1, max_size=3).map("\n".join)
    return st.one_of(
        st.builds(lambda text: f"({text}\n)", body),
        st.builds(lambda text: f"{{ {text}\n}}", body),
        st.builds(lambda text: f"if true; then {text}\nfi", body),
        st.builds(lambda text: f"if false; then :; else {text}\nfi", body),
        st.builds(lambda text: f"true && {{ {text}\n}} || true", body),
        st.builds(lambda text: f"case x in y) ;; *) {text}\n;; esac", body),
        st.builds(lambda text: f"echo | {{ {text}\n}}", body),
        st.builds(lambda text: f"eval {single(text)}", body),
        st.builds(lambda text: f"bash -c {single(text)}", body),
        st.builds(lambda text: f"bash <<'DEEP'\n{text}\nDEEP\n", body.filter(lambda text: "DEEP" not in text)),
        st.builds(lambda text: f": $({text}\n)", body),
        st.builds(lambda text, folder: f"cd -- {folder} || exit\n{text}", body, folders),
        st.builds(lambda text, folder: f"(cd -- {folder} && {{ {text}\n}})", body, folders),
        st.builds(lambda text, folder: f"pushd {folder} > /dev/null || exit\n{text}\npopd > /dev/null", body, folders),
        st.builds(lambda text, number: f"f{number}() {{ {text}\n}}\nf{number}", body, st.integers(0, 2)),
        st.builds(lambda path, text: f'g() {{ local p="$1"; echo {single(text)} > "$p"; }}; g {path}', words, texts),
        st.builds(
            lambda paths: f'for w in {" ".join(paths)}; do echo x >> "$w"; done',
            st.lists(words, min_size=1, max_size=3),
        ),
        st.builds(lambda path: f'W={path}; echo x > "$W"', words),
        st.builds(lambda path: f"W={path}\nsed -i 's/a/b/' -- \"${{W}}\" 2>/dev/null", words),
        st.builds(lambda text, path: f"while true; do {text}\nbreak; done >> {path}", body, words),
    )


programs = st.recursive(simple, nested, max_leaves=5)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that each program starts with; a copy of it at ``../run``."""
    base = tmp_path_factory.mktemp("programs").resolve() / "base"
    for folder in FOLDERS:
        (base / "repo" / folder).mkdir(parents=True)
        files_at(base / "repo" / folder, dict.fromkeys(NAMES[:4], "a\nb\n"))
    files_at(base / "repo", dict.fromkeys(NAMES, "a\nb\n"))
    for folder in ("home", "tmp"):
        (base / folder).mkdir()
    for path in base.rglob("*"):
        os.utime(path, (sandbox.LONG_AGO, sandbox.LONG_AGO))
    return base


# The same programs each time, and the first that fails as it is: making it smaller would take minutes.
@settings(
    max_examples=25, derandomize=True, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(several=st.lists(programs, min_size=SEVERAL, max_size=SEVERAL))
def test_what_a_program_changes_is_found(start: Path, several: list[str]) -> None:
    run = start.parent / "run"
    shutil.rmtree(run, ignore_errors=True)
    roots = [str(run / str(number)) for number in range(len(several))]
    for root in roots:
        shutil.copytree(start, root)
    subprocess.run(
        ["bash"],
        input="\n".join(
            f"(cd {single(root)}/repo && exec bash -c {single(text)})" for text, root in zip(several, roots)
        ),
        env=sandbox.environment(roots[0]),
        text=True,
        capture_output=True,
        timeout=60,
    )
    before = sandbox.Snapshot(str(start))
    for text, root in zip(several, roots):
        changed, _git = before.changed(sandbox.Snapshot(root))
        # The ground itself is as it was before the program.
        effects = effects_of(text, f"{start}/repo", sandbox.environment(str(start)))
        missed = set(changed) - met(effects, str(start), changed).certain
        assert not missed, (text, sorted(missed))

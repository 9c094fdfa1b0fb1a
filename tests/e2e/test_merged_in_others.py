"""A stale whole write goes ahead merged in further clients, and their user's rules about the file decide as before.

Twelve rules, four that allow, four that ask and four that deny, with a merged text and without. A question gets no answer
here, so a file that is asked about stays as it is.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest

from .client import Call
from .more import OtherClient
from .test_merged_writes import BEFORE, BOTH, FILE, MINE, THEIRS, commit, write_stale
from .test_more_clients import Stock

KINDS = ("allow", "ask", "deny")
# Copilot's and Cline's own tools refuse to write a whole file over an existing one, so their shell does it. Copilot's
# rules are flags; Cline's one rule is to ask about all tools, or never.
COPILOTS_RULES = {
    "allow": (
        ("--allow-tool", "shell(tee)"), ("--allow-tool", "shell(tee:*)"), ("--allow-tool", "shell"),
        ("--allow-all-tools",),
    ),
    "ask": ((), ("--allow-tool", "shell(cat:*)"), ("--allow-tool", "write"), ("--allow-tool", "shell(te)")),
    "deny": (
        ("--allow-all-tools", "--deny-tool", "shell(tee)"), ("--allow-all-tools", "--deny-tool", "shell(tee:*)"),
        ("--allow-all-tools", "--deny-tool", "shell"), ("--allow-tool", "shell(tee)", "--deny-tool", "shell(tee)"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def stock() -> Iterator[Stock]:
    stock = Stock()
    yield stock
    stock.close()


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.xdist_group(f"more-{name}")) for name in ("gemini", "copilot", "cline")
    ]
)
def other(request: pytest.FixtureRequest, stock: Stock) -> Iterator[OtherClient]:
    client = stock.client(request.param)
    yield client
    client.ground.end_processes()


def document(other: OtherClient, file: str, text: str) -> Call:
    """Return the call that replaces a file: by the client's own tool, or in its shell where that refuses."""
    if other.name == "gemini":
        return other.create(file, text)
    return other.shell(f"tee {file} <<'EOF'\n{text}EOF")


def test_a_stale_text_is_merged(other: OtherClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other, "create", partial(document, type(other)(other.ground)))
    told = write_stale(other, "merge", [FILE], after=[other.shell(f"cat {FILE}")])
    assert (other.ground.checkout / FILE).read_text() == BOTH, told
    assert "was merged with a person's change of line 2" in other.said("merge")
    told = write_stale(other, "conflict", ["other.md"], THEIRS.replace("by another", "by me"))
    assert (other.ground.checkout / "other.md").read_text() == THEIRS
    assert "a person's work" in told["other.md"]


def test_twelve_rules_of_gemini(stock: Stock, monkeypatch: pytest.MonkeyPatch) -> None:
    other = stock.client("gemini")
    files, command = [file for kind in KINDS for file in ruled_files(kind)] + ["none.md"], other.command
    write_policies(other.ground.home / ".gemini/policies/own.toml")

    def ruled(prompt: str, resume: str | None, fork: str | None, extra: tuple[str, ...]) -> list[str]:
        return [one for one in command(prompt, resume, fork, extra) if one != "--yolo"]

    monkeypatch.setattr(other, "command", ruled)
    told = write_stale(other, "merged", files)
    assert written(other, files) == set(ruled_files("allow")), told
    for file in ruled_files("allow"):
        assert (other.ground.checkout / file).read_text() == BOTH
    # the same without a replaced input: the text has the other lines itself
    told = write_stale(other, "unmerged", files, BOTH)
    assert written(other, files) == set(ruled_files("allow")), told


@pytest.mark.parametrize("text", [MINE, BOTH], ids=["merged", "unmerged"])
def test_twelve_rules_of_copilot(text: str, stock: Stock, monkeypatch: pytest.MonkeyPatch) -> None:
    other = stock.client("copilot")
    command, path, found = other.command, other.ground.checkout / FILE, {}
    for kind, rules in COPILOTS_RULES.items():
        for number, flags in enumerate(rules):

            def ruled(
                prompt: str,
                resume: str | None,
                fork: str | None,
                extra: tuple[str, ...],
                flags: tuple[str, ...] = flags,
            ) -> list[str]:
                plain = command(prompt, resume, fork, extra)
                return [plain[0], *flags, *(one for one in plain[1:] if one != "--allow-all-tools")]

            monkeypatch.setattr(other, "command", ruled)
            path.write_text(BEFORE)
            commit(other, other.ground.checkout)
            path.write_text(THEIRS)
            other.run(f"{kind}-{number}", document(other, FILE, text))
            found[kind, number] = path.read_text()
    assert found == {
        (kind, number): BOTH if kind == "allow" else THEIRS
        for kind, rules in COPILOTS_RULES.items()
        for number in range(len(rules))
    }


@pytest.mark.parametrize("text", [MINE, BOTH], ids=["merged", "unmerged"])
def test_the_rule_of_cline(text: str, stock: Stock) -> None:
    other = stock.client("cline")
    path = other.ground.checkout / FILE
    for number, (approved, expected) in enumerate((("true", BOTH), ("false", THEIRS))):
        path.write_text(BEFORE)
        commit(other, other.ground.checkout)
        path.write_text(THEIRS)
        other.run(f"ruled-{number}", document(other, FILE, text), extra=("--auto-approve", approved))
        assert path.read_text() == expected, (approved, other.results(f"ruled-{number}"))


def ruled_files(kind: str) -> list[str]:
    """Return the files of the four rules of one kind."""
    return [f"{kind}-1.md", f"{kind}/two.md", f"sub/{kind}-3.md", f"{kind}-4.md"]


def written(other: OtherClient, files: Iterable[str]) -> set[str]:
    """Return the files that the session was let write."""
    return {file for file in files if "by me" in (other.ground.checkout / file).read_text()}


def write_policies(path: Path) -> None:
    """Write the rules for Gemini CLI: patterns of the input's JSON text."""
    decisions = {"allow": "allow", "ask": "ask_user", "deny": "deny"}
    rules = ['[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = "cat"\ndecision = "allow"\npriority = 500\n']
    for kind in KINDS:
        for pattern in (f"{kind}-1.md", f'"{kind}/[a-z]+', f"{kind}-3", f'file_path":"[^"]*{kind}-4'):
            rules.append(
                f"[[rule]]\ntoolName = \"write_file\"\nargsPattern = '{pattern}'\n"
                f'decision = "{decisions[kind]}"\npriority = 500\n'
            )
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(rules))

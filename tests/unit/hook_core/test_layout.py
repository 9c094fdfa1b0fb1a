"""Changes of layout after a call: by a formatter, by a client that saves other line ends, and by a person."""

import time
from pathlib import Path
from typing import NamedTuple

import pytest
from support.altered import Limits
from support.files import text_at
from support.traced import Player, git, lines_of, note
from support.world import World, hunks_of, patch, some_time_passes

from swarm_hook_core.traces import seen
from swarm_hook_core.traces.versions.layout import MARK, Sources, brings_words, laid_out, words_of
from swarm_hook_core.traces.versions.lines import Fold

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_faults")]
NAME = "notes.md"
CODE = "f( 1 )\ng( 2 )\nh( 3 )\n"


class Formatted(NamedTuple):
    """A committed content, an edit of it, and the content that a formatter or the client leaves."""

    before: str
    old: str
    new: str
    after: str


FORMATTED = {
    "spaces": Formatted(CODE, "g( 2 )", "g( 22 )", "f(1)\ng(22)\nh(3)\n"),
    "line ends": Formatted("f\r\ng\r\nh\r\n", "g", "G", "f\nG\nh\n"),
    "to CRLF": Formatted("f\ng\nh\n", "g", "G", "f\r\nG\r\nh\r\n"),
    "a byte order mark": Formatted("\ufefff\ng\nh\n", "g", "G", "f\nG\nh\n"),
    "quotes and commas": Formatted(
        "use('a', 'b')\ncall(\n  'c',\n  1\n)\nend()\n",
        "end()",
        "end( 2 )",
        'use("a", "b");\ncall("c", 1);\nend(2);\n',
    ),  # fmt: skip
    "broken lines": Formatted(
        "def f(): pass\ng(1, 2)\nh()\n", "h()", "h( 3)", "def f():\n    pass\n\n\ng(1, 2)\nh(3)\n"
    ),
    "its line is broken": Formatted(
        "f()\n",
        "f()",
        "f()\nlong_name( first_argument,second_argument )",
        "f()\nlong_name(\n    first_argument,\n    second_argument,\n)\n",
    ),  # fmt: skip
    "all in one line": Formatted('{"a":1,"b":[1,\n2]}\n', '"a":1', '"a":11', '{ "a": 11, "b": [1, 2] }\n'),
    "round brackets": Formatted(
        "a(x => x).b(y => y)\nif (c): d()\ne()\n",
        "e()",
        "e( 'e' )",
        'a((x) => x).b(\n  (y) => y,\n);\nif c: d()\ne("e");\n',
    ),
    "blank lines": Formatted("f\n\n\n\ng\nh  \n", "g", "G", "f\n\nG\nh\n"),
    "the end of the file": Formatted("f\ng\nh", "g", "G", "f\nG\nh\n"),
}


def edits(me: Player, file: Path, old: str, new: str) -> None:
    """Let the session change the file with its client's tool."""
    if me.runtime == "claude-code":
        assert me.told("Edit", {"file_path": str(file), "old_string": old, "new_string": new}) == ""
    else:
        change = f"*** Update File: {file.name}\n{hunks_of(str(file), old, new)}"
        assert me.told("apply_patch", patch(change)) == ""
    saved(file, file.read_bytes().decode().replace(old, new))


def saved(file: Path, text: str) -> None:
    some_time_passes()
    file.write_bytes(text.encode())
    some_time_passes()


def formatted(world: World, name: str, runtime: str, ends: bool = False) -> Player:
    """Play a session's edit and a formatter after it. `ends`: the call's end is noted before that."""
    case, file = FORMATTED[name], world.repo / NAME
    file.write_bytes(case.before.encode())
    world.commit()
    me = Player(runtime, world.repo)
    me.runs("ls")
    edits(me, file, case.old, case.new)
    if ends:
        note(me.session_id, str(world.repo), "over", str(world.repo), time.time(), runtime=runtime)
    saved(file, case.after)
    return me


def persons(file: Path) -> list[str]:
    """Return the lines that a person may have put in or taken out."""
    return [
        line.text.decode()
        for change in Fold(str(file)).changes()
        for line in (*change.removed, *change.added)
        if any(one.is_person for one in line.authors)
    ]


def owners(file: Path, me: Player) -> list[str]:
    """``text=owners`` of each line: `-` committed, `0` the session, `?` a person."""
    return [
        f"{line.text.decode().strip()}="
        + ("|".join(sorted("0" if one.session_id == me.session_id else "?" for one in line.authors)) or "-")
        for line in lines_of(str(file))
    ]


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
@pytest.mark.parametrize("name", FORMATTED)
@pytest.mark.sampled
def test_a_session_commits_what_a_formatter_has_made_of_its_edit(name: str, runtime: str, world: World) -> None:
    me = formatted(world, name, runtime)
    assert persons(world.repo / NAME) == []
    assert world.swarm("blame", NAME).out.count("a person") == 0
    done = world.swarm("commit", "-m", "mine", NAME, as_=me)
    assert done.code == 0, done.err
    assert git(world.repo, "show", f"HEAD:{NAME}").encode() == FORMATTED[name].after.replace("\r", "").encode()
    assert git(world.repo, "status", "--short", NAME) == ""


@pytest.mark.parametrize("name", FORMATTED)
@pytest.mark.sampled
def test_a_session_takes_back_what_a_formatter_has_made_of_its_edit(name: str, world: World) -> None:
    me = formatted(world, name, "claude-code", ends=True)
    assert not me.ask("Bash", {"command": f"git checkout -- {NAME}"}).denied
    assert not me.ask("Bash", {"command": f"git stash push -- {NAME}"}).denied
    done = world.swarm("undo", NAME, "--session", me.id)
    assert done.code == 0, done.err
    assert (world.repo / NAME).read_bytes() == FORMATTED[name].before.encode()


def test_a_person_s_line_keeps_its_place_where_a_layout_is_partly_committed(world: World, tmp_path: Path) -> None:
    file, part, me = world.repo / NAME, tmp_path / "part", Player("claude-code", world.repo)
    file.write_text("f( 1 )\nh( 3 )\n")
    world.commit()
    me.runs("ls")
    saved(file, CODE)
    edits(me, file, "h( 3 )\n", "h( 3 )\nmine( 4 )\n")
    saved(file, "f(1)\ng(2)\nh(3)\nmine(4)\n")
    part.write_text("f(1)\nh(3)\n")
    committed = git(world.repo, "hash-object", "-w", str(part)).strip()
    git(world.repo, "update-index", "--cacheinfo", f"100644,{committed},{NAME}")
    git(world.repo, "commit", "-qm", "a part")
    done = world.swarm("undo", NAME, "--session", me.id)
    assert done.code == 0, done.err
    assert file.read_text() == "f(1)\ng( 2 )\nh(3)\n"


def test_a_commit_keeps_a_peer_s_line_that_was_committed_before_it_was_laid_out(world: World) -> None:
    file, me, peer = world.repo / NAME, Player("claude-code", world.repo), Player("codex", world.repo)
    file.write_text(CODE)
    world.commit()
    me.runs("ls")
    saved(file, f"{CODE}person( 9 )\n")
    edits(peer, file, "f( 1 )\n", "f( 1 )\npeer( 4 )\n")
    assert world.swarm("commit", "-m", "theirs", NAME, as_=peer).code == 0
    me.runs(f"cat {NAME}")
    edits(me, file, "g( 2 )", "g( 22 )")
    saved(file, "f(1)\npeer(4)\ng(22)\nh(3)\nperson(9)\n")
    done = world.swarm("commit", "-m", "mine", NAME, as_=me)
    assert done.code == 0, done.err
    assert git(world.repo, "show", f"HEAD:{NAME}") == "f(1)\npeer(4)\ng(22)\nh(3)\n"


def test_a_person_s_line_stays_the_person_s_in_another_layout(world: World) -> None:
    file = text_at(world.repo / NAME, CODE)
    world.commit()
    file.write_text(CODE.replace("f( 1 )", "f( 'of a person', 1 )\nlong( by,a,person )"))
    me = Player("claude-code", world.repo)
    me.runs("ls")
    edits(me, file, "g( 2 )", "g( 22 )")
    saved(file, 'f("of a person", 1)\nlong(\n  by,\n  a,\n  person\n)\ng(22)\nh(3)\n')
    assert owners(file, me) == [
        'f("of a person", 1)=?', "long(=?", "by,=?", "a,=?", "person=?", ")=?", "g(22)=0", "h(3)=0"
    ]  # fmt: skip
    for command in (f"git checkout -- {NAME}", "git stash", f"git restore {NAME}"):
        assert "a person's work" in me.ask("Bash", {"command": command}).words, command
    assert world.swarm("undo", NAME, "--session", me.id).code == 0
    before = CODE.replace("f( 1 )", "f( 'of a person', 1 )\nlong( by,a,person )").encode()
    assert words_of(file.read_bytes()) == words_of(before), "no word of the person's is lost"
    assert file.read_text().endswith("g( 2 )\nh( 3 )\n")


def test_a_peer_s_line_stays_the_peer_s_in_another_layout(world: World) -> None:
    file = text_at(world.repo / NAME, CODE)
    world.commit()
    peer, me = Player("codex", world.repo), Player("claude-code", world.repo)
    edits(peer, file, "h( 3 )", "h( 'of a peer' )")
    me.runs(f"cat {NAME}")
    edits(me, file, "g( 2 )", "g( 22 )")
    saved(file, 'f(1)\ng(22)\nh("of a peer")\n')
    names = {me.session_id: "me", peer.session_id: "peer"}
    found = [{names.get(one.session_id, "?") for one in line.authors} for line in lines_of(str(file))]
    assert found == [{"me"}, {"me"}, {"peer"}]
    assert world.swarm("commit", "-m", "mine", NAME, as_=me).code == 0
    assert git(world.repo, "show", f"HEAD:{NAME}") == "f(1)\ng(22)\nh( 3 )\n"


def test_a_line_in_another_layout_stays_the_session_s_beside_a_removal(world: World) -> None:
    """The removed line has words of the new one: by their number alone the edit might never have been made."""
    file = text_at(world.repo / NAME, "f( 1 )\nh( 1 )\n")
    world.commit()
    me = Player("claude-code", world.repo)
    me.runs("ls")
    edits(me, file, "h( 1 )\n", "h( 1 )\ng( 1 )\n")
    saved(file, "h(1)\ng(1)\n")  # by a formatter, and a person
    assert owners(file, me)[1].startswith("g(1)=0"), owners(file, me)


def test_another_s_removal_of_a_line_in_a_new_layout_is_that_other_s(world: World, limits: Limits) -> None:
    limits(seen, APART_NS=0)
    file = text_at(world.repo / NAME, CODE)
    world.commit()
    me, other = Player("claude-code", world.repo), Player("codex", world.repo)
    me.runs("ls")
    edits(me, file, "g( 2 )", "g( 22 )")
    saved(file, "f(1)\ng(22)\nh(3)\n")
    me.runs("ls")
    other.runs(f"cat {NAME}")
    edits(other, file, "f(1)\n", "")
    removers = {line.text: {author.session_id for author in line.authors}
                for change in Fold(str(file)).changes() for line in change.removed}  # fmt: skip
    assert removers[b"f( 1 )\n"] == {other.session_id} and removers[b"h( 3 )\n"] == {me.session_id}
    assert world.swarm("commit", "-m", "mine", NAME, as_=me).code == 0
    assert git(world.repo, "show", f"HEAD:{NAME}") == "f( 1 )\ng(22)\nh(3)\n"


def test_a_person_s_removal_between_lines_in_a_new_layout_is_protected(world: World) -> None:
    file = text_at(world.repo / NAME, CODE)
    world.commit()
    saved(file, "f( 1 )\nh( 3 )\n")  # by a person
    me = Player("claude-code", world.repo)
    me.runs("ls")
    edits(me, file, "f( 1 )\n", "f( 1 )\ni( 4 )\n")
    saved(file, "f(1)\ni(4)\nh(3)\n")
    assert "a person's work" in me.ask("Bash", {"command": "git reset -q --hard"}).words


@pytest.mark.parametrize("when", ["after the next call", "after the turn", "in a file that no call named"])
def test_a_person_who_lays_out_a_file_is_named(when: str, world: World, limits: Limits) -> None:
    limits(seen, APART_NS=0)
    file, other = world.repo / NAME, world.repo / "other.md"
    file.write_text(CODE)
    other.write_text(CODE)
    world.commit()
    me = Player("claude-code", world.repo)
    me.runs("ls")
    edits(me, file, "g( 2 )", "g( 22 )")
    if when == "in a file that no call named":
        file = other
    elif when == "after the turn":
        me.turn_ends()
    else:
        me.runs("true")
    saved(file, file.read_text().replace("( ", "(").replace(" )", ")"))
    assert {"f( 1 )\n", "f(1)\n", "h( 3 )\n", "h(3)\n"} <= set(persons(file))


NEW_WORDS = {
    "beside a new layout": ("f(1)\ng(22)\nNEW\nh(3)\n", "NEW=0|?"),
    "an import is removed": ("g( 22 )\nh( 3 )\n", ""),
    "a committed line is moved": ("h( 3 )\nf( 1 )\ng( 22 )\n", ""),
    "an operator is changed": ("f( 1 )\ng( 22 )\nh( -3 )\n", "h( -3 )=0|?"),
    "a line is added": ("f( 1 )\ng( 22 )\nNEW\nh( 3 )\n", "NEW=?"),
}


@pytest.mark.parametrize("name", NEW_WORDS)
def test_what_is_more_than_layout_may_be_a_person_s(name: str, world: World) -> None:
    file = text_at(world.repo / NAME, CODE)
    world.commit()
    me = Player("claude-code", world.repo)
    me.runs("ls")
    edits(me, file, "g( 2 )", "g( 22 )")
    after, expected = NEW_WORDS[name]
    saved(file, after)
    found = owners(file, me)
    assert expected in found or not expected, found
    assert next(one for one in found if one.startswith("g(")).endswith("=0")
    doubtful = [line for change in Fold(str(file)).changes() for line in (*change.removed, *change.added)]
    assert any(any(one.is_person for one in line.authors) for line in doubtful)
    if "added" not in name:
        both = {"?" if one.is_person else "0" for line in doubtful for one in line.authors if len(line.authors) == 2}
        assert both == {"0", "?"}


def test_a_line_of_the_session_that_a_sorter_moves_stays_its_own(world: World) -> None:
    file = text_at(world.repo / NAME, "import b\nimport c\n\nb, c\n")
    world.commit()
    me = Player("claude-code", world.repo)
    me.runs("ls")
    edits(me, file, "import c\n", "import c\nimport a\n")
    saved(file, "import a\nimport b\nimport c\n\nb, c\n")
    assert "import a=0" in owners(file, me)
    assert world.swarm("commit", "-m", "mine", NAME, as_=me).code == 0


def test_an_edit_that_was_never_made_gives_its_session_no_layout(world: World) -> None:
    file = text_at(world.repo / NAME, CODE)
    world.commit()
    me = Player("codex", world.repo)
    me.runs("ls")
    me.told("apply_patch", patch(f"*** Update File: {NAME}\n@@\n-g( 2 )\n+of_the_session( 22 )\n"))
    saved(file, "f(1)\ng(2)\nh(3)\n")
    assert all(one.endswith(("=?", "=0|?")) for one in owners(file, me)), owners(file, me)


def test_layout_is_taken_over_and_nothing_else() -> None:
    old = [b"f( 1 )\n", b"\n", b"a + b\n", b"call(\n", b"  'x',\n", b")\n"]
    new = [b"f(1)\n", b"a - b\n", b'call("x")\n']
    assert laid_out(old, new) == [b"f(1)\n", b"a + b\n", b'call("x")\n']
    assert laid_out([MARK + b"a\r\n"], [b"a\n"]) == [b"a\n"]
    assert laid_out(old, old) == old and laid_out([], [b"x\n"]) == []
    assert words_of(b"".join(laid_out(old, []))) == words_of(b"".join(old))
    assert brings_words(old, new) is False and brings_words(old, [*old, b"f\n"]) is True


def test_each_line_of_a_new_layout_has_its_sources() -> None:
    sources = Sources([b"ab\n", b"{\n", b"cd ef\n", b"}\n", b"\n", b"gh\n"])
    asked = [b"a\n", b"b {\n", b"cd\n", b"ef\n", b"}\n", b"g\n", b"h }\n"]
    assert [sources.take(line) for line in asked] == [[0], [0], [2], [2], [3], [5], [5]]

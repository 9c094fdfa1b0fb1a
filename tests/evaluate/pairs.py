"""Work 2: two features of one repository, from published patches, built by two sessions in one folder.

A pair is a folder with two or more `feature*/feature.patch`, or `feature*.patch`, of one base. The base is made from the
patches' own context; the lines between are filled up. Each session reads its files first, and then makes its patch's
changes by edits, here-documents and whole texts in turn. It obeys: after a refusal it reads again and tries once more, and then comes
back to that change in its next turn, with another reading. It commits as agents do, with `git add -A && git commit`.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .played import Place, Session
from .ways import Way

SAMPLE = Path(__file__).with_name("pairs")
HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
HOWS = ("edit", "document", "whole")
IDLE = 3  # rounds in which neither session came on: then one gives up
SHORTEST = 4  # characters of a line that is counted
OFFERED = re.compile(r"`(swarm-mcp commit [^`]*)`")


class Hunk(NamedTuple):
    """Lines `old` from number `first` on become `new`."""

    first: int
    old: list[str]
    new: list[str]


Patch = dict[str, list[Hunk]]  # by file


def parse(text: str) -> Patch:
    """Return the hunks of a unified diff. Binary files are left out."""
    found: Patch = {}
    hunk = None
    before = file = ""
    for line in text.splitlines():
        if line.startswith("diff --git "):
            hunk = None
        elif hunk is None and line.startswith("--- "):
            before = line[4:].partition("\t")[0].removeprefix("a/")
        elif hunk is None and line.startswith("+++ "):
            after = line[4:].partition("\t")[0].removeprefix("b/")
            file = before if after == "/dev/null" else after
        elif at := HUNK.match(line):
            hunk = Hunk(int(at[1]), [], [])
            found.setdefault(file, []).append(hunk)
        elif hunk and line[:1] in (" ", "-", "+", ""):
            if line[:1] != "+":
                hunk.old.append(line[1:])
            if line[:1] != "-":
                hunk.new.append(line[1:])
    return found


def base_of(patches: list[Patch]) -> dict[str, str]:
    """Return the files that the patches change, as their context has them."""
    lines: dict[str, dict[int, str]] = {}
    for patch in patches:
        for file, hunks in patch.items():
            for hunk in hunks:
                for number, line in enumerate(hunk.old, hunk.first):
                    lines.setdefault(file, {})[number] = line
    return {
        file: "".join(f"{known.get(number, f'# line {number} of {file}')}\n" for number in range(1, max(known) + 1))
        for file, known in lines.items()
    }


def applied(hunk: Hunk, text: str) -> tuple[str, str] | None:
    """Return the only text in the file that the hunk can replace, and its replacement: with less context if it must."""
    old, new = hunk.old, hunk.new
    for context in (3, 1, 0):
        head = tail = 0
        while head < min(len(old), len(new)) and old[head] == new[head]:
            head += 1
        while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
            tail += 1
        begin, end = max(head - context, 0), max(tail - context, 0)
        # An insertion needs a line to stand under or over.
        for lead, trail in ((begin, end), (max(head - 1, 0), tail), (head, max(tail - 1, 0))):
            was = "".join(f"{line}\n" for line in old[lead : len(old) - trail])
            will = "".join(f"{line}\n" for line in new[lead : len(new) - trail])
            if was and text.count(was) == 1:
                return was, will
    return None


class Builder:
    """A session that builds one feature. `made` has the lines that it was told were written; `unmade` counts others."""

    def __init__(self, place: Place, name: str, patch: Patch, turn: int, base: dict[str, str]) -> None:
        self.session, self.patch, self.turn = Session(place, name), patch, turn
        self.name = name
        self.made: dict[str, list[str]] = {}
        self.own = dict(base)  # the files' texts as they would be without the other session
        self.unmade = 0
        self.wasted = 0
        self.hurry = False

    def moves(self) -> Iterator[bool]:
        """Make one call after another. Yields True where something was done, False in a wait for the other session."""
        for file in self.patch:
            self.session.read(file)
            yield True
        to_do = [step for number, file in enumerate(self.patch) for step in self._steps(file, number)]
        again = False
        while to_do and not self.hurry:
            postponed = []
            for file, how, hunks in to_do:
                if again:
                    self.session.read(file)
                    yield False
                for attempt in range(2):
                    done = self._make(file, how, hunks)
                    yield done
                    if done:
                        break
                    if not attempt:
                        self.session.read(file)
                        self.wasted += 1
                        yield False
                else:
                    postponed.append((file, how, hunks))
            to_do, again = postponed, True
            if to_do:
                self.session.next_turn()
        self.unmade += sum(len(_added(hunks)) for _, _, hunks in to_do)
        yield from self._commit()
        self.session.give_back()
        self.session.end()

    def _steps(self, file: str, number: int) -> Iterator[tuple[str, str, list[Hunk]]]:
        how = HOWS[(self.turn + number) % len(HOWS)]
        if how == "edit" and all(hunk.old for hunk in self.patch[file]):
            for hunk in self.patch[file]:
                yield file, how, [hunk]
        else:
            yield file, how, self.patch[file]

    def _make(self, file: str, how: str, hunks: list[Hunk]) -> bool:
        """Make one call: an edit, or a text from the session's last reading. True if it was told that it is done."""
        session, text = self.session, self.session.known.get(file, "")
        if not session.may_write(file):
            self.wasted += 1
            return False
        before = self.own.get(file, "")
        after = _all_applied(hunks, before)
        assert after is not None, (file, hunks)
        fit = applied(hunks[0], text) if how == "edit" and hunks[0].old else None
        if fit:
            done = session.edit(file, *fit)
        elif how == "document":
            merged = _merged(text, before, after)
            done = session.shell(_document(file, merged))
            if done:
                session.known[file] = merged
        else:
            done = session.write(file, _merged(text, before, after))
        if done:
            self.own[file] = after
            self.made.setdefault(file, []).extend(_added(hunks))
        else:
            self.wasted += 1
        return done

    def _commit(self) -> Iterator[bool]:
        """Commit as agents do; if that is refused, by the command that the refusal offers, or its own files by name."""
        if not self.made:
            return
        files = " ".join(self.made)
        tries = [f"git add -A && git commit -qm '{self.name}'"]
        tries += [f"git add -- {files} && git commit -qm '{self.name}' -- {files}"] * 2
        for command in tries:
            if self.session.shell(command):
                yield True
                return
            self.wasted += 1
            yield True
            offered = OFFERED.search(self.session.said)
            if offered and self.session.shell(_filled(offered[1], self.name)):
                yield True
                return


def _filled(command: str, name: str) -> str:
    return command.replace("TEXT", f"'{name}'").replace(" [FILE...]", "")


def _document(file: str, text: str) -> str:
    return f"mkdir -p $(dirname {file}) && cat > {file} <<'END_OF_TEXT'\n{text}END_OF_TEXT\n"


def _merged(text: str, before: str, after: str) -> str:
    """Return `text` with the change from `before` to `after` in it. Where both have changed a place, both stay."""
    if text == before:
        return after
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("text", "before", "after")]
        for file, content in zip(files, (text, before, after)):
            file.write_text(content)
        argv = ["git", "merge-file", "--union", "--stdout", *map(str, files)]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def _added(hunks: list[Hunk]) -> list[str]:
    return [line for hunk in hunks for line in hunk.new if line not in hunk.old]


def _all_applied(hunks: list[Hunk], text: str) -> str | None:
    for hunk in hunks:
        if not hunk.old:  # a new file
            text = text or "".join(f"{line}\n" for line in hunk.new)
            continue
        fit = applied(hunk, text)
        if fit is None:
            return None
        text = text.replace(*fit)
    return text


class Built(NamedTuple):
    """The result of pairs: lines lost, commits with the other's lines, and the rest as the page names it."""

    lines: int
    lost: int
    bundled: int
    refused: int
    vain: int
    unmade: int
    conflicts: int
    seconds: tuple[float, ...]  # that the hooks of each call took


def load(folder: Path) -> list[tuple[str, list[Patch]]]:
    """Return the pairs below a folder: the first two features of each task, if they fit together, by name."""
    tasks: dict[Path, list[Path]] = {}
    for file in sorted([*folder.rglob("feature.patch"), *folder.rglob("feature[0-9].patch")]):
        tasks.setdefault(file.parent.parent if file.name == "feature.patch" else file.parent, []).append(file)
    read = {task: [parse(file.read_text(errors="replace")) for file in files[:2]] for task, files in tasks.items()}
    return [(str(task.relative_to(folder)), patches) for task, patches in read.items() if _fit(patches)]


def _fit(patches: list[Patch]) -> bool:
    """Return True for two patches of one base: each applies to the context of both."""
    base = base_of(patches)
    return len(patches) == 2 and all(
        _all_applied(hunks, base.get(file, "")) is not None for patch in patches for file, hunks in patch.items()
    )


def play(place: Place, number: int, patches: list[Patch]) -> Built:
    """Have two sessions build two features, call by call in turn."""
    base = base_of(patches)
    place.begin(base)
    builders = [Builder(place, f"feature-{which}", patch, number + which, base) for which, patch in enumerate(patches)]
    at_work = [(builder, builder.moves()) for builder in builders]
    idle = 0
    while at_work:
        came_on = False
        for one in list(at_work):
            moved = next(one[1], None)
            if moved is None:
                at_work.remove(one)
            came_on = came_on or moved is not False
        idle = 0 if came_on else idle + 1
        if idle > IDLE:
            at_work[0][0].hurry, idle = True, 0
    place.join()
    return _judged(place, base, builders)


def _judged(place: Place, base: dict[str, str], builders: list[Builder]) -> Built:
    """Compare the folder with the writes that each session was told of."""
    there = {
        name: set((place.checkout / name).read_text().splitlines())
        for name in {name for builder in builders for name in builder.made}
        if (place.checkout / name).exists()
    }
    lines = lost = 0
    own = [_lines_of(builder.patch, base) for builder in builders]
    for which, builder in enumerate(builders):
        taken = {line for hunks in builders[1 - which].patch.values() for hunk in hunks for line in hunk.old}
        counted = [
            (file, line)
            for file, added in builder.made.items()
            for line in added
            if (file, line) in own[which] - own[1 - which] and line not in taken
        ]
        lines += len(counted)
        lost += sum(line not in there.get(file, ()) for file, line in counted)
    bundled = 0
    names = [builder.name for builder in builders]
    for row in place.run("git", "log", "--no-merges", "--format=%H %s", "main").splitlines():
        commit, _, subject = row.partition(" ")
        if subject in names:
            other = own[1 - names.index(subject)] - own[names.index(subject)]
            shown = parse(place.run("git", "show", "--format=", "-U0", commit))
            bundled += any((file, line) in other for file, hunks in shown.items() for line in _added(hunks))
    sessions = [builder.session for builder in builders]
    return Built(
        lines,
        lost,
        bundled,
        sum(session.refused for session in sessions),
        sum(builder.wasted for builder in builders),
        sum(builder.unmade for builder in builders),
        place.conflicts,
        tuple(took for session in sessions for took in session.seconds),
    )


def _lines_of(patch: Patch, base: dict[str, str]) -> set[tuple[str, str]]:
    """Return the lines that a patch adds, without those that are short, or in the base too."""
    return {
        (file, line)
        for file, hunks in patch.items()
        for line in _added(hunks)
        if len(line.strip()) >= SHORTEST and f"{line}\n" not in base.get(file, "")
    }


def total(way: Way, programs: Path | None, pairs: list[tuple[str, list[Patch]]]) -> tuple[Built, tuple[int, int]]:
    """Play all pairs in one home; return the sums, and the files written inside and outside of the checkout."""
    place = Place(way, programs)
    try:
        came = [play(place, number, patches) for number, (_, patches) in enumerate(pairs)]
        written = place.written()
    finally:
        place.close()
    sums = [sum(one[column] for one in came) for column in range(len(Built._fields) - 2)]
    return Built(*sums, place.conflicts, tuple(took for one in came for took in one.seconds)), written


def first_of_each(pairs: list[tuple[str, list[Patch]]]) -> list[tuple[str, list[Patch]]]:
    """Return the first pair of each repository: of names that begin with the same folder."""
    return list({name.split("/task")[0]: (name, patches) for name, patches in reversed(pairs)}.values())[::-1]

"""The authors of committed lines, as Agent Trace records in git notes (https://agent-trace.dev).

A note of `REF` belongs to one commit, and has one record of JSON a line. Git's own merge of notes keeps such lines. A
record has the ranges of one commit. When git rewrites that commit, its records go along to the new one by equal lines,
under their own ids. Records of other tools are read, and carried along, too.

Recording is off until a person switches it on (`settings.authorship`), and never fails a commit.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from swarm_hook_core import settings, state
from swarm_hook_core.git_repository import Refused, Repository, blobs, sizes
from swarm_hook_core.naming import UNNAMED, session_name
from swarm_hook_core.repository import NO_PROGRAMS
from swarm_hook_core.state import client_note, make_private, open_private, read_private, state_dir
from swarm_hook_core.traces import journal_name
from swarm_hook_core.traces.changed_lines import equal_parts, split_lines
from swarm_hook_core.traces.transcript import TAILS, tail
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_hook_core.traces.versions.lines import POPULAR, Element, Fold, NoLines
from swarm_hook_core.traces.versions.notes import Author, Notes
from swarm_mcp import __version__
from swarm_mcp.changes.dirty import SECONDS, top_over
from swarm_mcp.changes.owners import A_PERSON

try:
    import fcntl
except ImportError:  # Windows: git's own lock alone keeps two writers apart
    fcntl = None  # type: ignore[assignment]


Record = dict[str, Any]
Line = tuple[str, str, int]  # commit, path there, line number there

REF = "refs/notes/agent-trace"
VERSION = "0.1"  # of the specification: its schema wants two numbers, its examples have three
HUMAN, AI, MIXED, UNKNOWN = KINDS = ("human", "ai", "mixed", "unknown")
NOT_WRITTEN_HERE = ("rebase", "pull", "merge", "revert", "amend")  # in git's own word for the making of a commit
SCHEME = "swarm-session:"  # of a session's address, as the specification wants one: swarm-session:RUNTIME/ID#AGENT
PROVIDERS = {"claude-": "anthropic", "gpt-": "openai", "gemini-": "google"}  # by the beginning of a model's name
LONGEST_MODEL = 250
LONGEST_CLIENT_NOTE = 8192
MODEL = re.compile(rb'"model":\s?"([^"\\<]+)"')


class Contributor(NamedTuple):
    """The contributor of some lines: `kind` is one of `KINDS`, `sessions` are addresses."""

    kind: str
    model_id: str = ""
    sessions: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The contributor in words: ``codex 5f0c2f6e (openai/gpt-5)``, ``codex 5f0c2f6e or a person``."""
        names = list(dict.fromkeys(map(_session_in_words, self.sessions))) or ["an agent"]
        if self.kind == HUMAN or (self.kind == UNKNOWN and not self.sessions):
            return {HUMAN: A_PERSON}.get(self.kind, "an unknown author")
        if self.kind == MIXED:
            return f"{', '.join(names)} and {A_PERSON}"
        if self.kind == UNKNOWN:
            names.append(A_PERSON)
        model = ""
        if self.model_id:
            model = f" ({self.model_id})"
        return " or ".join(names) + model


# ------------------------------------------------------------------------------------------- after a commit


def committed(folder: str) -> None:
    """Record the authors of HEAD, just made in the work tree around `folder`. Raises nothing."""
    hooked("post-commit", folder, ())


def hooked(hook: str, folder: str, rewritten: Sequence[str]) -> None:
    """Record the authors after git's `hook`, ``post-commit`` or ``post-rewrite``. Raises nothing.

    `rewritten`: the lines that git gives to the second, with old and new commit.
    """
    try:
        if settings.authorship("", folder).value != "on" or settings.is_silent(folder):
            return
        repository = Repository(top_over(folder), SECONDS)
        commit, action = _made(repository)
        with _alone():
            if hook == "post-rewrite":
                pairs = [(words[0], words[1]) for words in map(str.split, rewritten) if len(words) > 1]
                _follow(repository, pairs, "amend" in action)
            elif "cherry-pick" in action:
                _follow(repository, [(source, commit) for source in _picked(repository)], False)
            elif not (any(word in action for word in NOT_WRITTEN_HERE) or _notes(repository, [commit])[commit]):
                _keep(repository, commit, filter(None, [_recorded(repository, commit)]))
    except Exception as error:  # the commit itself is made
        state.record("authorship", hook, state.describe(error))


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Keep other recordings waiting: git's notes of two at one moment would lose those of one."""
    make_private(state_dir())
    handle = open_private(os.path.join(state_dir(), "authorship.lock"), os.O_RDWR | os.O_CREAT)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _made(repository: Repository) -> tuple[str, str]:
    """Return HEAD's commit, and git's word for its making, such as ``commit (amend)``; empty without a reflog."""
    commit = repository.ask("rev-parse", "HEAD").strip()
    try:
        last = repository.ask("log", "-g", "-1", "--format=%H %gs", "HEAD").strip()
    except Refused:
        last = ""  # a repository without reflogs
    told, _, subject = last.partition(" ")
    if told != commit:
        subject = ""
    return commit, subject.partition(":")[0]


def _picked(repository: Repository) -> list[str]:
    """Return the commit that a cherry-pick has just applied; [] after a conflict."""
    try:
        return [repository.ask("rev-parse", "-q", "--verify", "CHERRY_PICK_HEAD").strip()]
    except Refused:
        return []  # a person has resolved a conflict, and git has forgotten the commit


def _follow(repository: Repository, pairs: Sequence[tuple[str, str]], is_amended: bool) -> None:
    """Carry records from old commits over to new ones: ``[(old, new)]``. `is_amended`: with lines written since."""
    notes = _notes(repository, {commit for pair in pairs for commit in pair})
    for new in dict.fromkeys(new for _old, new in pairs):
        found = []
        for old in (old for old, other in pairs if other == new):
            if is_amended:
                found.append(_recorded(repository, new, old))
            found += [_carried(repository, record, new) for record in notes[old]]
        known = {str(record.get("id")) for record in found if record}
        # A copy that git's own settings have made counts ranges as in the old commit.
        kept = [one for one in notes[new] if _revision(one) == new and str(one.get("id")) not in known]
        if any(found):
            _keep(repository, new, [*kept, *filter(None, found)])


def _keep(repository: Repository, commit: str, records: Collection[Record] | Iterator[Record]) -> None:
    text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records if record["files"])
    if text:
        repository.ask("notes", f"--ref={REF}", "add", "-f", "-F", "-", commit, stdin=text)


# ------------------------------------------------------------------------------------------- the lines of a commit


def _recorded(repository: Repository, commit: str, base: str = "") -> Record | None:
    """Return a record of the lines that `commit` adds to `base` (default: its parent), None without such lines."""
    words = ["diff-tree", "--root", "--no-commit-id", "-r", "-z", "-M", "--raw", "--abbrev=64", *NO_PROGRAMS]
    parts = repository.ask(*words, *filter(None, (base, commit))).split("\0")
    changes: list[tuple[str, str, str]] = []  # objects before and after, path
    while len(parts) > 1:
        facts, path = parts.pop(0).split(" "), parts.pop(0)
        if facts[4][:1] in "RC":
            path = parts.pop(0)
        if facts[1].startswith("100"):
            changes.append((facts[2], facts[3], path))
    names = [name for change in changes for name in change[:2]]
    small = [name for name, size in zip(names, sizes(repository, names)) if size is not None and size <= LIMIT_BYTES]
    contents, notes, sessions, files = blobs(repository, small), Notes(), _Sessions(), []
    for before, after, path in changes:
        try:
            fold = Fold(os.path.join(repository.top, path), contents.get(before) or b"", notes=notes)
        except (NoLines, OSError):
            continue  # a binary file, or one that has become a folder
        contributors: dict[int, Contributor] = {}
        lines, others = fold.lines(), _edited(fold)
        for here, there in _same([line.text for line in lines], split_lines(contents.get(after) or b"")):
            if lines[here].authors:
                contributors[there + 1] = sessions.contributor(lines[here].authors, others.get(here, ()))
        if contributors:
            files.append({"path": path, "conversations": _conversations(contributors)})
    if not files:
        return None
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    tool, vcs = {"name": "swarm-mcp", "version": __version__}, {"type": "git", "revision": commit}
    return {"version": VERSION, "id": str(uuid.uuid4()), "timestamp": at, "vcs": vcs, "tool": tool, "files": files}


def _edited(fold: Fold) -> dict[int, tuple[Author, ...]]:
    """Return ``{index: authors before}`` of present lines that have replaced other authors' uncommitted ones."""
    before: dict[Element, tuple[Author, ...]] = {}
    for hunk in fold.hunks:
        authors = tuple(one for line in hunk.removed for one in (*line.authors, *before.get(line, ())))
        if authors:
            before.update((line, authors) for line in hunk.added)
    return {index: before[line] for index, line in enumerate(fold.alive) if line in before}


class _Sessions:
    """The sessions of a record, each with the model that its client's log names last."""

    def __init__(self) -> None:
        self._models: dict[tuple[str, str], str] = {}

    def contributor(self, authors: Collection[Author], before: Collection[Author]) -> Contributor:
        """Return the contributor of a line by `authors` in place of uncommitted lines of the authors `before`."""
        kinds, earlier = ({one.is_person for one in some} for some in (authors, before))
        if kinds == {True} and False not in earlier:
            return Contributor(HUMAN)
        kind, involved = UNKNOWN, list(authors)
        if len(kinds) == 1:
            kind = AI
            if len(kinds | earlier) > 1:
                kind, involved = MIXED, [*authors, *before]
        agents = [one for one in involved if not one.is_person]
        named = [one for one in agents if session_name(*one.session) != UNNAMED]
        models = {self._model(one.session) for one in agents}
        if len(models) > 1:
            models = {""}
        return Contributor(kind, models.pop(), tuple(dict.fromkeys(map(_address, named))))

    def _model(self, session: tuple[str, str]) -> str:
        if session not in self._models:
            self._models[session] = _model_of(*session)
        return self._models[session]


def _model_of(runtime: str, session_id: str) -> str:
    """Return the session's model as models.dev writes it, as far as the client's log tells; else an empty text."""
    try:
        note = read_private(client_note(journal_name(runtime, session_id)), LONGEST_CLIENT_NOTE)
        path = os.fsdecode(note).split(" ", 2)[2]
        names = MODEL.findall(tail(path, TAILS[0])[0])
    except (OSError, ValueError, IndexError):
        names = []  # the client has told of no log, or the session has ended
    if not names:
        return ""
    name = names[-1].decode("utf-8", "replace")[:LONGEST_MODEL]
    provider = next((value for start, value in PROVIDERS.items() if name.startswith(start)), "")
    return "/".join(filter(None, (provider, name)))


def _address(author: Author) -> str:
    address = f"{SCHEME}{quote(author.runtime, '')}/{quote(author.session_id, '')}"
    if author.agent:
        address += f"#{quote(author.agent, '')}"
    return address


def _session_in_words(address: str) -> str:
    runtime, slash, session_id = address.removeprefix(SCHEME).partition("#")[0].partition("/")
    if not address.startswith(SCHEME) or not slash:
        return "an agent"
    return session_name(unquote(runtime), unquote(session_id))


def _conversations(contributors: dict[int, Contributor]) -> list[Record]:
    found: list[Record] = []
    for one in dict.fromkeys(contributors.values()):
        told = {"type": one.kind}
        if one.model_id:
            told["model_id"] = one.model_id
        ranges = _ranges(number for number in contributors if contributors[number] == one)
        found.append({"contributor": told, "ranges": ranges})
        if one.sessions:
            found[-1]["related"] = [{"type": "session", "url": url} for url in one.sessions]
    return found


def _ranges(numbers: Collection[int] | Iterator[int]) -> list[Record]:
    """Return line numbers as ranges of the specification."""
    found: list[Record] = []
    for number in sorted(numbers):
        if found and found[-1]["end_line"] == number - 1:
            found[-1]["end_line"] = number
        else:
            found.append({"start_line": number, "end_line": number})
    return found


def _same(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return ``[(index in old, index in new)]`` of equal lines, but for their ends."""
    before, after = ([line.rstrip(b"\r\n") for line in lines] for lines in (old, new))
    parts = equal_parts(before, after, exact_up_to=POPULAR) or []
    return [(here + at, there + at) for here, there, size in parts for at in range(size)]


# ------------------------------------------------------------------------------------------- notes


def contributors_of(top: str, lines: Collection[Line]) -> dict[Line, Contributor]:
    """Return the recorded contributors of committed lines of the work tree `top`. Raises NoAnswer, git's Refused."""
    repository = Repository(top, SECONDS)
    found: dict[Line, Contributor] = {}
    wanted: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        wanted.setdefault(line[:2], []).append(line)
    for commit, records in _notes(repository, {line[0] for line in lines}).items():
        for record in records:
            if _revision(record) != commit:  # copied by git's own settings
                record = _carried(repository, record, commit)
            for path, conversation, one in _all_ranges(record):
                told = one.get("contributor") or conversation.get("contributor") or {}
                related = conversation.get("related") or ()
                urls = tuple(str(other.get("url")) for other in related if other.get("type") == "session")
                kind, model = told.get("type"), str(told.get("model_id") or "")[:LONGEST_MODEL]
                if kind not in KINDS:
                    kind = UNKNOWN
                contributor = Contributor(kind, model, urls)
                for line in wanted.get((commit, path), ()):
                    if one["start_line"] <= line[2] <= one["end_line"]:
                        found[line] = contributor
    return found


def _notes(repository: Repository, commits: Collection[str]) -> dict[str, list[Record]]:
    """Return the records of these commits, by one question: git keeps notes under one of three names."""
    names = {commit: _note_names(commit) for commit in commits}
    contents = blobs(repository, [name for some in names.values() for name in some])
    return {
        commit: [record for name in some for record in _records(contents[name] or b"")]
        for commit, some in names.items()
    }


def _note_names(commit: str) -> tuple[str, ...]:
    return f"{REF}:{commit}", f"{REF}:{commit[:2]}/{commit[2:]}", f"{REF}:{commit[:2]}/{commit[2:4]}/{commit[4:]}"


def _records(note: bytes) -> list[Record]:
    """Return the records of a note; other text, and records of another form, are left out."""
    found, text, decoder = [], note.decode("utf-8", "replace").strip(), json.JSONDecoder()
    while text:
        try:
            record, end = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            break  # the rest is no JSON
        text = text[end:].lstrip()
        if _is_record(record):
            found.append(record)
    return found


def _is_record(record: Any) -> bool:
    try:
        numbers = [one[end] for _path, conversation, one in _all_ranges(record) for end in ("start_line", "end_line")]
        for _path, conversation, one in _all_ranges(record):
            told = [one.get("contributor", {}), conversation.get("contributor", {}), *conversation.get("related", ())]
            if not all(isinstance(each, dict) for each in told):
                return False
        return bool(_revision(record)) and all(type(number) is int and number > 0 for number in numbers)
    except (KeyError, TypeError, AttributeError, ValueError):
        return False  # a member is missing, or of another type


def _revision(record: Record) -> str:
    revision = str((record.get("vcs") or {}).get("revision"))
    if revision.isalnum() and len(revision) >= 40:
        return revision
    return ""


def _all_ranges(record: Record) -> Iterator[tuple[str, Record, Record]]:
    """Yield ``(path, conversation, range)``."""
    for file in record["files"]:
        for conversation in file["conversations"]:
            for one in conversation["ranges"]:
                yield file["path"], conversation, one


def _carried(repository: Repository, record: Record, commit: str) -> Record:
    """Return the record as of `commit`: its ranges are those of the same lines there, as far as they are there."""
    files, old = [], _revision(record)
    for file in record["files"]:
        names = [f"{revision}:{file['path']}" for revision in (old, commit)]
        contents = blobs(repository, names)
        before, after = (split_lines(contents[name] or b"") for name in names)
        places = {here + 1: there + 1 for here, there in _same(before, after)}
        conversations = []
        for conversation in file["conversations"]:
            ranges = []
            for one in conversation["ranges"]:
                kept = {name: value for name, value in one.items() if name == "contributor"}
                inside = [new for line, new in places.items() if one["start_line"] <= line <= one["end_line"]]
                ranges += [{**each, **kept} for each in _ranges(inside)]
            if ranges:
                conversations.append({**conversation, "ranges": ranges})
        if conversations:
            files.append({**file, "conversations": conversations})
    return {**record, "vcs": {"type": "git", "revision": commit}, "files": files}

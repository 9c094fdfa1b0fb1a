"""All that a check may ask the coordinator's store, read-only, through indexes. ``glance`` is the first look."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from swarm_hook_core import clock, repository, state
from swarm_hook_core.json_text import loads
from swarm_hook_core.lookup import BATCH, GLOB, REQUESTS, FirstLook, Held, LockReader, ascii_lower, plain, storable
from swarm_hook_core.lookup.glance import MOST_ROOTS, UNREAD, StoreGlance
from swarm_hook_core.paths import LONGEST, NO_CASE, above, contains, finder, key_of
from swarm_hook_core.process import gone, host_id
from swarm_hook_core.repository import Tree
from swarm_hook_core.wildcards import PatternUnreadable, covers, folded, parsed

# Columns that tell if a session has gone (``process.departed``), of instances as `i`, swarm_sessions as `s`.
EVIDENCE = (
    "s.host, s.client_pid, s.client_start, s.terminal_pid, s.terminal_start, s.state, s.last_seen, s.lease_seconds,"
    " i.adopted, i.heartbeat, i.lease_until, s.other_clients, s.runtime"
)
# The same in files of a release in which a session had one client.
EARLIER_EVIDENCE = EVIDENCE.replace("s.other_clients", "NULL AS other_clients")
# Our own columns of a lock beyond the contract, of context as `c`; and the same as NULL, for a file that another
# program or an earlier release has made.
DETAILS = "c.mode, c.agent, c.pattern, c.base, c.fence, c.expected_end, c.ttl, c.renewed, c.booted, c.wall_until"
NO_DETAILS = DETAILS.replace("c.", "NULL AS ")
ALIAS_LIMIT = 64
NAMES_IN_FOLDER = 5000  # that are locked in one folder, before its files are asked about one by one

# Stored by another spelling than its key, or without one; the schema has an index on the files of these.
SPELLED = "c.path_key IS NOT c.file"
# The last component of a lock's path, lower-cased; the schema has an index on exactly this text.
NAME_OF_FILE = "lower(replace(file, rtrim(file, replace(file, '/', '')), ''))"


class StoreReader(StoreGlance, LockReader):
    """All answers of the store's file. `opened`: the first look at it, with whose connection the reader goes on."""

    def __init__(
        self, path: str, driver: Any = None, waits: bool = False, opened: StoreGlance | None = None,
        connection: Any = None,
    ):  # fmt: skip
        self._opened = opened
        if opened is None:
            StoreGlance.__init__(self, path, driver, waits, connection)
        else:
            self.__dict__.update(opened.__dict__)
        self._details = DETAILS
        self._evidence = EVIDENCE

    def __del__(self) -> None:
        if self._opened is None:
            StoreGlance.__del__(self)

    # ----------------------------------------------------------------------------------------- sessions

    def holder(self, runtime: str, session_id: str) -> tuple[str, str, Any] | None:
        for evidence in (EVIDENCE, EARLIER_EVIDENCE):
            found = self._rows_if_known(
                f"SELECT i.id, i.label, {evidence} FROM swarm_sessions s JOIN instances i ON i.id = s.instance_id"
                " WHERE s.runtime = ? AND s.session_id = ?",
                (runtime, session_id),
            )
            if found is not None:
                if found:
                    return (*found[0][:2], found[0])
                return None
        return None

    def other_sessions(self, runtime: str, session_id: str, since: float) -> list[Any]:
        for evidence in (EVIDENCE, EARLIER_EVIDENCE):
            found = self._rows_if_known(
                f"SELECT i.id, i.label, i.root, i.registered_at, {evidence} FROM swarm_sessions s JOIN instances i"
                " ON i.id = s.instance_id WHERE s.last_seen > ? AND s.runtime <> 'mcp'"
                f" AND NOT (s.runtime = ? AND s.session_id = ?) LIMIT {MOST_ROOTS}",
                (since, runtime, session_id),
            )
            if found is not None:
                return found
        return []

    def purpose_of(self, instance_id: str) -> str:
        task = (
            "SELECT title FROM tasks WHERE scope = (SELECT scope FROM instances WHERE id = ?) AND assignee = ?"
            " AND status IN ('claimed', 'in_progress') ORDER BY priority DESC, created_at, id LIMIT 1"
        )
        note = "SELECT content FROM context WHERE type = 'lock' AND instance_id = ? ORDER BY rowid DESC LIMIT 1"
        found = self._rows_if_known(task, (instance_id,) * 2) or self._rows_if_known(note, (instance_id,))
        if found:
            text = found[0][0]
        else:
            text = ""
        if isinstance(text, str):
            return text
        return ""

    def unread_mail(self, instance_id: str, after: int, limit: int) -> list[tuple[str, str | None, str]]:
        sql = (
            f"SELECT m.sender, (SELECT label FROM instances WHERE id = m.sender), m.content {UNREAD}"
            f" AND m.id > ? ORDER BY m.id LIMIT {limit}"
        )
        return [tuple(row) for row in self._rows_if_known(sql, (instance_id, instance_id, after)) or ()]

    def holds_as(self, instance_id: str, agent: str) -> bool:
        sql = "SELECT 1 FROM context WHERE type = 'lock' AND instance_id = ? AND agent = ? LIMIT 1"
        return bool(self._rows_if_known(sql, (instance_id, agent)))

    def was_denied(self, instance_id: str, held: Held, since: float, path: str = "", tool: str = "") -> bool:
        sql = (
            "SELECT 1 FROM swarm_denials WHERE instance_id = ? AND path_key IN (?, ?) AND holder_id = ?"
            " AND denied_at > ? AND (path IS NULL OR ? IN ('', path))"
            f" AND coalesce(tool, '') NOT IN ({_marks(REQUESTS)}) AND ('' IN (?, coalesce(tool, '')) OR tool = ?)"
        )
        values = (instance_id, held.names[0], held.names[-1], held.instance_id, since, path, *REQUESTS, tool, tool)
        return bool(self._rows_if_known(sql, values))

    def waiting_for(self, path: str) -> int:
        sql = "SELECT wants, until, host, pid, start FROM swarm_waiters ORDER BY ticket LIMIT 1000"
        rows = self._rows_if_known(sql)
        if not rows:
            return 0

        return count(rows, path)

    # -------------------------------------------------------------------------------- locks on these paths

    def locks_on(self, keys: list[str]) -> list[Held]:
        found: list[Held] = []
        has_unkeyed = self._has_unkeyed()
        for some in _batches(_storable(keys)):
            marks = _marks(some)
            rows = self._locks(f"c.path_key IN ({marks})", some)
            rows += self._locks(f"{SPELLED} AND c.file IN ({marks})", some)
            found += [_held(row, row["file"], row["path_key"]) for row in rows]
            if has_unkeyed:
                found += self._aliased(some)
        return found

    def _aliased(self, keys: list[str]) -> list[Held]:
        """Return locks that another implementation stored under a path with links still in it."""
        sql = f"SELECT rowid, file FROM context WHERE type = 'lock' AND path_key IS NULL AND {NAME_OF_FILE} = ? LIMIT ?"
        rows: list[Any] = []
        # One by one: for several names at once SQLite takes the other index, and reads every row without a key.
        for name in {ascii_lower(name) for name in {os.path.basename(key) for key in keys}}:
            rows += self._ask(sql, (name, ALIAS_LIMIT - len(rows)))
            if len(rows) == ALIAS_LIMIT:
                # Each costs a look at the disk. `swarm-mcp` gives such rows a key whenever it writes; until then every
                # check meets them.
                state.record_hourly(
                    "store", "pre_tool_use", f"more than {ALIAS_LIMIT} locks without a key share one name"
                )
                break
        if not rows:
            return []

        found, key_in = {}, finder(keys)
        for place, file in rows:
            if isinstance(file, str) and "\0" not in file and len(file) <= LONGEST:
                key = key_in(file)
                if key:
                    found[place] = key
        return [_held(row, row["file"], found[row["rowid"]]) for row in self._by_rowid(list(found))]

    def locks_under(self, folders: list[str], own_id: str, limit: int, own_agent: str = "") -> list[Held]:
        question = (*folders, own_id, limit, own_agent)
        return self._unless_changed(question, lambda: self._locks_under(folders, own_id, limit, own_agent))

    def _locks_under(self, folders: list[str], own_id: str, limit: int, own_agent: str) -> list[Held]:
        found: dict[Any, Held] = {}
        for folder in folders:
            if not storable(folder):
                continue
            # All texts that go on with a slash: "0" comes after it.
            below = [folder.rstrip("/") + "/", folder.rstrip("/") + "0"]
            rows = self._keyed_between(below, own_id, own_agent, limit)
            # The plus keeps SQLite from the index of keys, where every row without one would be read.
            unkeyed = f"c.instance_id <> ? AND +c.path_key IS NULL AND {SPELLED} AND c.file >= ? AND c.file < ?"
            for row in rows + self._locks(unkeyed, [own_id, *below], limit):
                key = row["path_key"]
                found[row["file"], key, row["instance_id"]] = _held(row, row["file"], *([key] if key else []))
        return list(found.values())

    def names_in(self, folders: list[str], own_id: str) -> set[str] | None:
        if self._has_unkeyed() or self._has_patterns() or self._has_worktree_locks():
            return None
        names: set[str] = set()
        for folder in _storable(folders):
            low = folder.rstrip("/") + "/"
            for column, condition in (("path_key", ""), ("file", " AND path_key IS NOT file")):
                sql = (
                    f"SELECT {column} FROM context WHERE type = 'lock' AND {column} >= ? AND {column} < ?{condition}"
                    " AND (instance_id <> ? OR agent IS NOT NULL) LIMIT ?"
                )
                found = self._rows_if_known(sql, (low, low[:-1] + "0", own_id, NAMES_IN_FOLDER))
                if found is None or len(found) == NAMES_IN_FOLDER:
                    return None
                names.update(text[len(low) :].partition("/")[0].casefold() for (text,) in found)
        return names

    def _has_unkeyed(self) -> bool:
        unkeyed = "SELECT 1 FROM context WHERE type = 'lock' AND path_key IS NULL LIMIT 1"
        return bool(self._ask(unkeyed))

    def _keyed_between(self, bounds: list[str], own_id: str, own_agent: str, limit: int) -> list[Any]:
        condition = "c.path_key >= ? AND c.path_key < ? AND "
        if self._details is DETAILS:
            try:  # a lock of another agent of one's own session counts as another's
                others = "(c.instance_id <> ? OR c.agent IS NOT NULL AND c.agent <> ?)"
                return self._select(condition + others, [*bounds, own_id, own_agent], limit)
            except self.driver.OperationalError as error:
                if "no such column" not in str(error):
                    raise
            self._details = NO_DETAILS
        return self._select(condition + "c.instance_id <> ?", [*bounds, own_id], limit)

    # ------------------------------------------------------------------------------------ locks on patterns

    def patterns_over(self, keys: list[str]) -> list[Held]:
        if not self._has_patterns():
            return []

        found = covering(self._patterns_under(stored_under(_storable(keys))), keys)
        return [_held(row, *found[row["rowid"]], row["path_key"]) for row in self._by_rowid(list(found))]

    def patterns_near(self, folders: list[str], own_id: str) -> list[Held]:
        if not self._has_patterns():
            return []
        from swarm_hook_core.wildcards import Cover

        folders = _storable(folders)
        found = self._patterns_under([*stored_under(folders), *(GLOB + folder for folder in folders)])
        for folder in folders:
            low = GLOB + folder.rstrip("/")
            found += self._patterns("path_key > ? AND path_key < ?", [low + "/", low + "0"])
        rows = self._by_rowid(list(dict.fromkeys(row["rowid"] for row in found)))
        near = [_held(row) for row in rows if row["instance_id"] != own_id or row["agent"] is not None]
        return [held for held in near if (cover := Cover(held)) and any(map(cover.leads_to, folders))]

    def _has_patterns(self) -> bool:
        return bool(self._patterns("path_key >= ? AND path_key < ? LIMIT 1", [GLOB, GLOB[:-1] + ";"], "1"))

    def _patterns_under(self, path_keys: list[str]) -> list[Any]:
        return [row for some in _batches(path_keys) for row in self._patterns(f"path_key IN ({_marks(some)})", some)]

    def _patterns(
        self, condition: str, values: list[str], columns: str = "rowid, pattern, base, path_key"
    ) -> list[Any]:
        # Only the columns that decide if a pattern is met: most are not, and need no more.
        sql = f"SELECT {columns} FROM context WHERE type = 'lock' AND {condition}"
        return self._ask(sql, values)

    def _by_rowid(self, ids: list[int]) -> list[Any]:
        return [row for some in _batches(ids) for row in self._locks(f"c.rowid IN ({_marks(some)})", some)]

    # --------------------------------------------------------------------------- locks of other work trees

    def worktree_locks_over(self, keys: list[str]) -> list[Held]:
        if not self._has_worktree_locks():
            return []

        return over(self, keys)

    def worktree_locks_under(self, folders: list[str], own_id: str, limit: int) -> list[Held]:
        if not self._has_worktree_locks():
            return []

        return under(self, folders, own_id, limit)

    def named_in_repositories(self, names: list[str]) -> list[Held]:
        """Return locks that hold in every work tree, on paths with one of these names in a repository."""
        return [
            held
            for some in _batches(_storable(names))
            for held in self._shared(f"c.repository IN ({_marks(some)})", some)
        ]

    def named_between(self, low: str, high: str, others_than: str = "", limit: int = -1) -> list[Held]:
        """Return locks that hold in every work tree, with names in this range; not those of session `others_than`."""
        if not storable(low):
            return []
        between = "c.repository >= ? AND c.repository < ?"
        if not others_than:
            return self._shared(between, [low, high], limit)
        return self._shared(
            f"(c.instance_id <> ? OR c.agent IS NOT NULL) AND {between}", [others_than, low, high], limit
        )

    def _shared(self, condition: str, values: list[str], limit: int = -1) -> list[Held]:
        rows = self._select(f"c.repository IS NOT NULL AND {condition}", values, limit, ", c.repository")
        return [_held(row, repository=row["repository"]) for row in rows]

    def _has_worktree_locks(self) -> bool:
        """Return True if there is any lock of that kind: one step into an index that has nothing else."""
        return bool(self._rows_if_known("SELECT 1 FROM context WHERE type = 'lock' AND repository IS NOT NULL LIMIT 1"))

    # ------------------------------------------------------------------------------------------- the file

    def _locks(self, condition: str, values: list[Any], limit: int = -1) -> list[Any]:
        try:
            return self._select(condition, values, limit)
        except self.driver.OperationalError as error:
            if "no such column" not in str(error) or self._details is not DETAILS:
                raise
        self._details = NO_DETAILS  # an earlier release's file, until the coordinator next writes to it
        return self._select(condition, values, limit)

    def _select(self, condition: str, values: list[Any], limit: int, more: str = "") -> list[Any]:
        # CROSS JOIN keeps the lock index outermost, in spite of the planner's guesses about table sizes.
        sql = (
            "SELECT c.file, c.path_key, c.instance_id, i.label, c.content, c.created_at,"
            f" {self._details}, {self._evidence}, c.rowid{more}"
            " FROM context c CROSS JOIN instances i ON i.id = c.instance_id"
            " LEFT JOIN swarm_sessions s ON s.instance_id = c.instance_id"
            f" WHERE c.type = 'lock' AND {condition} LIMIT {limit}"
        )
        try:
            return self._ask(sql, values)
        except self.driver.OperationalError as error:
            if "other_clients" not in str(error) or self._evidence is EARLIER_EVIDENCE:
                raise
        self._evidence = EARLIER_EVIDENCE  # an earlier release's file, until the coordinator next writes to it
        return self._select(condition, values, limit, more)


def whole(found: FirstLook) -> LockReader:
    """Return a reader with all answers, on the connection of a first look."""
    if isinstance(found, LockReader):
        return found
    assert isinstance(found, StoreGlance)
    return StoreReader(found.path, found.driver, found.waits, found)


def _held(row: Any, *names: str, repository: Any = None) -> Held:
    """Return the Held of a row of ``StoreReader._select``, found by the keys `names`."""
    file = row["file"]
    return Held(
        plain(file) if isinstance(file, str) else file, row["instance_id"], row["label"], row["content"],
        row["created_at"], names=names, agent=row["agent"], mode=row["mode"], expected_end=row["expected_end"],
        pattern=row["pattern"], base=row["base"], fence=row["fence"],
        lease=(row["ttl"], row["renewed"], row["booted"], row["wall_until"]),
        evidence=row, path_key=row["path_key"], repository=repository,
    )  # fmt: skip


def _storable(texts: list[str]) -> list[str]:
    return [text for text in texts if text.isascii() or storable(text)]


def _batches(values: list[Any]) -> list[Any]:
    return [values[start : start + BATCH] for start in range(0, len(values), BATCH)]


def _marks(values: Any) -> str:
    return ",".join("?" * len(values))


# Locks on patterns, as a check meets them: found by the folder that all they cover is in, and looked at one by one.


def stored_under(keys: Iterable[str]) -> list[str]:
    """Return the values of ``path_key`` that a pattern may have if it covers a path with one of these keys."""
    folders = [*(over for key in keys for over in above(key)), "/", NO_CASE + "/"]
    return [GLOB + folder for folder in dict.fromkeys(folders)]


def covering(locks: Any, keys: Iterable[str]) -> dict[Any, tuple[str, ...]]:
    """Return ``{lock: keys (of paths) that it covers}``, without locks that cover no such path.

    `locks` has ``(lock, pattern, key of the folder it counts from, its path_key)``. An unreadable pattern covers
    nothing.
    """
    found: dict[Any, tuple[str, ...]] = {}
    # (base, stored under) -> [(key, the part of it that the pattern is compared with)]
    inside: dict[tuple[Any, Any], list[tuple[str, str]]] = {}
    for lock, pattern, base, path_key in locks:
        place = (base, path_key)
        if place not in inside:
            inside[place] = _inside(base, path_key, keys)
        there = inside[place]
        if not there or pattern.__class__ is not str:
            continue
        fold = base[: len(NO_CASE)] == NO_CASE
        for run in _runs(pattern, fold):
            there = [one for one in there if run in one[1]]
        if not there:
            continue  # nearly all end here, without being taken apart

        try:
            segments = parsed(pattern, fold)
        except PatternUnreadable:  # another program's pattern
            continue
        names = tuple(key for key, rest in there if covers(segments, rest))
        if names:
            found[lock] = names
    return found


def covered(pattern: Any, base: Any, path_key: Any, keys: Iterable[str]) -> tuple[str, ...]:
    """Return `covering`, of one lock."""
    return covering([(0, pattern, base, path_key)], keys).get(0, ())


def _inside(base: Any, path_key: Any, keys: Iterable[str]) -> list[tuple[str, str]]:
    if base.__class__ is not str or path_key.__class__ is not str:
        return []
    folder, start = path_key[len(GLOB) :].rstrip("/") + "/", len(base.rstrip("/")) + 1
    return [(key, key[start:]) for key in keys if key.startswith(folder)]


def _runs(pattern: str, fold: bool) -> Sequence[str]:
    """Return texts that stand in everything a pattern covers, so far as they can be told at a glance."""
    if fold:
        pattern = folded(pattern)
    if "[" in pattern or "\\" in pattern or "//" in pattern or "/." in pattern or pattern[:1] == ".":
        return ()
    return [part.strip("/") for part in pattern.replace("?", "*").split("*")]


# The number of sessions that wait for a lock, for a denial. Loaded only for a denied call.


def count(rows: Any, path: str) -> int:
    """Return how many of `rows` wait for something that `path` is part of, or that is below it.

    A row is ``(wants, until, host, pid, start)`` of ``swarm_waiters``; those that have gone do not count.
    """
    key, here, now = key_of(path), host_id(), clock.now()
    found = 0
    for wants, until, host, pid, start in rows:
        over = isinstance(until, (int, float)) and until < now
        if not over and not gone(host, pid, start, here) and _meets(wants, key):
            found += 1
    return found


def _meets(wants: Any, key: str) -> bool:
    try:
        asked = loads(wants)
    except (ValueError, TypeError, RecursionError):  # another program's row
        return False
    return isinstance(asked, list) and any(_is_met(want, key) for want in asked if isinstance(want, dict))


def _is_met(want: dict[str, Any], key: str) -> bool:
    pattern, stored = want.get("pattern"), want.get("path_key")
    if pattern:
        return bool(covered(pattern, want.get("base"), stored, (key,)))
    names = [stored, *(want.get("keys") or ())]
    return any(_is_in_reach(key, name) for name in names if isinstance(name, str))


def _is_in_reach(key: str, other: str) -> bool:
    fold = NO_CASE in (key[: len(NO_CASE)], other[: len(NO_CASE)])
    one, two = (_plain(name, fold) for name in (key, other))
    return contains(one, two) or contains(two, one)


def _plain(key: str, fold: bool) -> str:
    if key.startswith(NO_CASE):
        path = key[len(NO_CASE) :]
    else:
        path = key
    if fold:
        return path.casefold()
    return path


# Locks that hold in several work trees of a repository, as a check in one of them meets them.
#
# Loaded only where the store has such a lock. A work tree takes part where its repository has ``swarm.logical`` on,
# or where a session holds such a lock in it; in any other, these locks hold nothing.

GIT_SECONDS = 0.1  # for the first commit of a repository, on the first question about it


def over(reader: StoreReader, keys: Iterable[str]) -> list[Held]:
    """Return the Held locks of other work trees on the paths with these keys, named as they are in this one.

    `reader` has ``named_in_repositories`` and ``named_between``, as ``sqlite.StoreReader``.
    """
    wanted: dict[str, tuple[str, Tree]] = {}  # name in a repository -> (key here, tree)
    for key, tree in _placed(keys):
        for name in _names(key, tree):
            wanted.setdefault(name, (key, tree))
    return _here(reader, [(held, *wanted[str(held.repository)]) for held in reader.named_in_repositories(list(wanted))])


def under(reader: StoreReader, folders: Iterable[str], own_id: str, limit: int) -> list[Held]:
    """Return the same for paths below any of these folders, of other sessions than one, at most `limit` for each."""
    found = []
    for key, tree in _placed(folders):
        for name in _names(key, tree):
            low, high = below(name)
            for held in reader.named_between(low, high, own_id, limit):
                if held.repository is not None and held.repository != low:
                    found.append((held, f"{key.rstrip('/')}/{held.repository[len(low) :]}", tree))
    return _here(reader, found)


def below(name: str) -> tuple[str, str]:
    """Return the range ``(from, to)`` of the names in a repository below the folder with this name."""
    if name.endswith(":"):
        return (name, name[:-1] + ";")
    return (name + "/", name + "0")


def takes_part(tree: Tree, keys_in_repository: Callable[[str, str], Iterable[str | None]]) -> bool:
    """Return True if locks of other work trees hold in `tree`.

    `keys_in_repository(low, high)` returns the path keys of all such locks with names in that range.
    """
    if repository.opted_in(tree):
        return True
    ranges = [(one + ":", one + ";") for one in repository.ids(tree)]
    return any(is_in(key, tree) for low, high in ranges for key in keys_in_repository(low, high))


def is_in(key: str | None, tree: Tree) -> bool:
    """Return True if the path with this key belongs to work tree `tree`, and not to another inside of it."""
    if not isinstance(key, str) or repository.place_of(key, tree.top) is None:
        return False
    nearest = repository.tree_over(key.removeprefix(NO_CASE))
    return nearest is None or nearest.top == tree.top or nearest.top.casefold() == tree.top.casefold() != tree.top


def _here(reader: StoreReader, found: list[tuple[Held, str, Tree]]) -> list[Held]:
    """Return of ``(held, key here, tree)`` the locks as they are named here, without those of this very tree."""

    def keys(low: str, high: str) -> list[str | None]:
        return [held.path_key for held in reader.named_between(low, high)]

    taking_part: dict[str, bool] = {}
    helds = []
    for held, key, tree in found:
        if not isinstance(held.path_key, str) or is_in(held.path_key, tree):
            continue  # found by its path
        if tree.top not in taking_part:
            taking_part[tree.top] = takes_part(tree, keys)
        if taking_part[tree.top]:
            held.names = (held.path_key, key)
            held.elsewhere, held.file = held.file, _spelled(key, held.file, tree)
            helds.append(held)
    return helds


def _spelled(key: str, file: str, tree: Tree) -> str:
    """Return the path that a key here names; in the letters of the lock's own `file` where the key has lost them."""
    if not key.startswith(NO_CASE):
        return key
    length = len(repository.place_of(key, tree.top) or "") - len(NO_CASE)
    if length > 0:
        return os.path.join(tree.top, file[-length:])
    return tree.top


def _placed(keys: Iterable[str]) -> list[tuple[str, Tree]]:
    """Return ``(key, tree)`` for those keys with paths in a work tree."""
    trees: dict[str, Tree | None] = {}  # folder -> the tree that it lies in, or None
    found = []
    for key in keys:
        if key.startswith("/") and "\0" not in key:
            tree = _tree(key, trees)
            if tree is not None:
                found.append((key, tree))
    # A key without letter case cannot be asked about; the same path is among the others with it.
    tops = {tree.top: tree for _key, tree in found}.values()
    for key in keys:
        if key.startswith(NO_CASE):
            near = [tree for tree in tops if repository.place_of(key, tree.top) is not None]
            if near:
                found.append((key, max(near, key=lambda tree: len(tree.top))))
    return found


def _tree(folder: str, trees: dict[str, Tree | None]) -> Tree | None:
    if folder not in trees:
        parent = os.path.dirname(folder)
        trees[folder] = repository.tree_at(folder)
        if trees[folder] is None and parent != folder:
            trees[folder] = _tree(parent, trees)
    return trees[folder]


def _names(key: str, tree: Tree) -> list[str]:
    if not repository.remembered(tree) and repository.opted_in(tree):
        repository.learn(tree, GIT_SECONDS)
    return repository.names_of(key, tree)

"""The decision that every runtime shares: may this session make this call now?"""

from os.path import realpath

from swarm_hook_core.paths import above, keys_for, real_paths, spellings, translated

FIRST_TARGETS = 40  # of many, which are asked about before the others: mostly one of them is held, or none is
TARGETS_AT_ONCE = 100  # of the others, between two looks at the clock
MOST_PATCHED = 2000  # files of a patch in a shell command, which are all looked at
DEEP = 64  # folders over a path, of which each is asked about


class Denial:
    """A refused call: the `path` it would have written, the lock (`held`) and the `reason`.

    `certain`: whether it would write it, and not only may. `times`: how many denials of this path there were lately,
    with this one, 0 where that is not known; `is_news`: whether the coordinator is to be told of it (``storms``).
    `file`: what to say it waits for; of a pattern no more than this path.
    """

    __slots__ = ("path", "held", "reason", "certain", "times", "is_news")

    def __init__(self, path, held, reason, certain=True):
        self.path = path
        self.held = held
        self.reason = reason
        self.certain = certain
        self.times = 0
        self.is_news = True

    @property
    def file(self) -> str:
        return self.path if self.held.pattern else self.held.file


class Verdict:
    """What is to be done about a call: a `denial` or None, a line for the model (`notice`, may be empty), and the
    locks (`watched`) whose files are to be compared afterwards. `failed`: the call could not be checked."""

    __slots__ = ("denial", "notice", "watched", "failed")

    def __init__(self, denial=None, notice="", watched=(), failed=False):
        self.denial = denial
        self.notice = notice
        self.watched = watched
        self.failed = failed


def decide(config, session, call, peers, now: float):
    """A Denial of `call`, a ToolCall, or None to let it pass: by the files that it says it writes. Changes nothing.

    Raises ValueError where the call writes files but its paths cannot be read.
    """
    if call.tool in config.write_tools:  # most calls: nothing more need be loaded for them
        targets = [(call.folder, path) for path in config.extract_paths(call.input)]
    else:
        from swarm_hook_core.targets import write_targets

        # What else such a patch writes is a guess: who reads shell commands finds more effects than can be kept.
        targets = write_targets(config, call.tool, call.input, call.folder)[:MOST_PATCHED]
    collision = first_collision(session, targets, peers)
    if collision is None:
        return None
    from swarm_hook_core.labels import token
    from swarm_hook_core.wording import reason

    path, held, _place, within = collision
    words = reason(
        call.tool, path, held, token(session.label, "identity"), now,
        within=within, own_id=session.instance_id, waiting=peers.waiting_for(path),
    )  # fmt: skip
    return Denial(path, held, words)


def first_collision(session, targets, peers, is_late=None):
    """``(path, held, place, within)`` of the first of `targets` (folder, path as spelled) that another holds, or None.

    A path is held by a lock on itself or, `within`, on a folder over it. `place`: which target it is. Where
    ``is_late(place)`` says so, that one and those behind it are not asked about any more.
    """
    real = real_paths()
    folders: set = set()
    found = _first_of(session, targets, range(len(targets))[:FIRST_TARGETS], peers, real, folders)
    if found or len(targets) <= FIRST_TARGETS:
        return found
    places: list = list(range(FIRST_TARGETS, len(targets)))
    if not moved_places(session):
        from swarm_hook_core.many_targets import to_ask

        places = to_ask(targets, places, peers)
    for begin in range(0, len(places), TARGETS_AT_ONCE):
        some = places[begin : begin + TARGETS_AT_ONCE]
        if is_late is not None and is_late(some[0]):
            return None
        found = _first_of(session, targets, some, peers, real, folders)
        if found:
            return found
    return None


def _first_of(session, targets, places, peers, real, folders: set):
    """The same of those at `places`. `folders`: the keys of those that other targets are in, which nobody holds."""
    wanted: dict = {}  # key -> the path that a denial names, which target it is of, whether a folder over it
    own: dict = {}  # the keys of the paths themselves
    for place in places:
        folder, spelled = targets[place]
        keys = all_keys(session, spelled, folder, real)
        for key in keys:
            own[key] = None
            wanted.setdefault(key, (keys[0], place, False))
        for key in keys:
            around = key.rpartition("/")[0]
            if around not in folders:
                folders.add(around)
                for over in _folders_over(key, peers):
                    wanted.setdefault(over, (keys[0], place, True))
    if not wanted:
        return None
    # Of one's own session only what another of its agents holds, which `Peers` has sorted out.
    found = peers.on(list(own), [key for key in wanted if key not in own])
    theirs = [held for held in found if held.instance_id != session.instance_id or held.agent]
    if not theirs:
        return None
    order = {key: position for position, key in enumerate(wanted)}
    position, first = min(
        ((min(order.get(name, len(order)) for name in held.names), held) for held in theirs), key=lambda pair: pair[0]
    )
    named = next((wanted[name] for name in first.names if order.get(name) == position), (first.file, 0, False))
    path, place, within = named
    return path, first, place, within


def _folders_over(key: str, peers) -> list[str]:
    """The keys of the folders over the path with this key; of a very deep one those in which there are any locks."""
    found = above(key)
    if len(found) > DEEP and peers.names_in([found[-DEEP]]) == set():
        return found[-DEEP:]
    return found


def all_keys(session, spelled: str, folder: str, real=realpath) -> list[str]:
    """``keys_for`` of a path, and of where the session's `file_root` says that it really is."""
    keys = keys_for(spelled, folder, real)
    for moved in moved_by(session, spelled, folder, real) if session.file_root else ():
        keys += keys_for(moved, folder, real)
    return keys


def moved_places(session, real=realpath) -> list:
    """``(folder, its git root)`` of the session where what is in them really is in its `file_root`; mostly none."""
    if not session.file_root:
        return []
    places = [(session.directory, session.root), (real(session.directory), real(session.root))]
    return [place for place in places if place[0] != session.file_root]  # else every path stays where it is


def moved_by(session, spelled: str, folder: str, real=realpath) -> list[str]:
    """Where the session's `file_root` says that the spellings of a path really are; those it leaves alone not."""
    places = moved_places(session, real)
    if not places:
        return []  # the common case
    found: list[str] = []
    for path in spellings(spelled, folder, real):
        for directory, root in places:
            moved = translated(path, directory, root, session.file_root)
            if moved != path and moved not in found:
                found.append(moved)
    return found

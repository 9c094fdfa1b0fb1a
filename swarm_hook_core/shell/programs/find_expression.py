"""The expression of ``find``: read once, and asked of one path at a time."""

import os

from swarm_hook_core.shell.globs import match
from swarm_hook_core.shell.programs.listing import names_below

MOST_WORDS = 400

# Predicates that take one word, beside those below.
_ONE = frozenset(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -xtype -newer -anewer -cnewer -mtime -mmin"
    " -atime -amin -ctime -cmin -size -user -group -uid -gid -perm -links -inum -samefile -lname -ilname -fstype -used"
    " -context -newermt -newerXY -newerat -newerct".split()
)
_OPTIONS_ONE = ("-maxdepth", "-mindepth", "-regextype")
_OPTIONS = frozenset("-depth -d -xdev -mount -daystart -follow -warn -nowarn -noleaf -ignore_readdir_race".split())
_PRINTS = ("-print", "-print0", "-ls")
_TO_FILE = {"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2}
_ASKS = frozenset("grep egrep fgrep rg test [ sh bash zsh false diff cmp git file head awk".split())
RUNS = ("-exec", "-execdir", "-ok", "-okdir")


class Action:
    """Something done with what was found. kind: ``-delete``, ``-exec``...; words: of its command."""

    __slots__ = ("kind", "words", "number")

    def __init__(self, kind, words, number):
        self.kind = kind
        self.words = words
        self.number = number


class Expression:
    """`actions` in order, and `reaches`, which tells what they are done with."""

    def __init__(self, words: list[str], folder, follows: bool):
        self.words = words
        self.at = 0
        self.folder = folder
        self.follows = follows
        self.actions: list[Action] = []
        self.deepest = self.shallowest = None
        self.depth_first = False
        self.broken = len(words) > MOST_WORDS
        self.root = self._either(0) if words and not self.broken else ("true",)
        if self.at < len(words):
            self.broken = True
        if not any(action.kind not in ("-prune", "-quit") for action in self.actions):
            self.actions.append(Action("-print", [], len(self.actions)))
            self.root = ("and", self.root, ("act", self.actions[-1]))
        self.prunes = any(action.kind == "-prune" for action in self.actions) and not self.depth_first

    def reaches(self, action: Action, operand: str, root: str):
        """A predicate of absolute paths at or under `root`, which the command spells `operand` (see ``model.Tree``)."""

        def admits(path: str):
            if self.broken:
                return None
            if path != root and not path.startswith(root.rstrip("/") + "/"):
                return False
            names = [] if path == root else path[len(root.rstrip("/")) + 1 :].split("/")
            if self.deepest is not None and len(names) > self.deepest:
                return False
            if self.shallowest is not None and len(names) < self.shallowest:
                return False
            certain = True
            if self.prunes:
                for depth in range(len(names)):
                    cut = self._hits(operand, root, names[:depth]).get("-prune", False)
                    if cut is True:
                        return False
                    certain = certain and cut is not None
            hit = self._hits(operand, root, names).get(action.number, False)
            return hit if certain or hit is False else None

        return admits

    def names(self, action: Action, operand: str, root: str, walk):
        """What `action` is done with at and under `root`, as `find` prints it; None where they are too many to list."""
        if self.broken or any(one.kind == "-quit" for one in self.actions):
            return None

        def look(names: list[str]):
            hits, depth = self._hits(operand, root, names), len(names)
            goes_on = self.deepest is None or depth < self.deepest
            cut = hits.get("-prune", False) if self.prunes else False
            path = os.path.join(root, *names)
            follows = self.follows or not names and operand.endswith("/")
            goes_on = goes_on and cut is not True and os.path.isdir(path) and (follows or not os.path.islink(path))
            reached = self.shallowest is None or depth >= self.shallowest
            return reached and hits.get(action.number, False), None if goes_on and cut is None else goes_on

        return names_below(walk, root, operand, look)

    def _hits(self, operand: str, root: str, names: list[str]) -> dict:
        """Number of an action, and ``-prune``, -> True or None, for those that come to what `names` lead to."""
        spelled = "/".join([operand.rstrip("/") or "/", *names]) if names else operand
        whole = os.path.join(root, *names)
        hits: dict = {}
        self._ask(self.root, spelled, whole, True, hits)
        return hits

    def _ask(self, node, spelled, whole, sure, hits):
        kind = node[0]
        if kind == "and":
            left = self._ask(node[1], spelled, whole, sure, hits)
            if left is False:
                return False
            right = self._ask(node[2], spelled, whole, sure and left is True, hits)
            return right if left is True or right is False else None
        if kind == "or":
            left = self._ask(node[1], spelled, whole, sure, hits)
            if left is True:
                return True
            right = self._ask(node[2], spelled, whole, sure and left is False, hits)
            return right if left is False or right is True else None
        if kind == "comma":
            self._ask(node[1], spelled, whole, sure, hits)
            return self._ask(node[2], spelled, whole, sure, hits)
        if kind == "not":
            inner = self._ask(node[1], spelled, whole, sure, hits)
            return None if inner is None else not inner
        if kind == "act":
            action = node[1]
            key = "-prune" if action.kind == "-prune" else action.number
            hits[key] = True if sure else hits.get(key)
            asks = action.kind in RUNS and action.words[-1:] != ["+"] and action.words[0].rpartition("/")[2] in _ASKS
            return None if asks else True
        if kind == "true":
            return True
        return _holds(node[1], node[2], spelled, whole, self)

    # Reading

    def _peek(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def _take(self) -> str:
        self.at += 1
        return self.words[self.at - 1] if self.at <= len(self.words) else ""

    def _either(self, depth):
        left = self._both(depth)
        while self._peek() in ("-o", "-or", ","):
            kind = "comma" if self._take() == "," else "or"
            left = (kind, left, self._both(depth))
        return left

    def _both(self, depth):
        left = self._one(depth)
        while self.at < len(self.words) and self._peek() not in ("-o", "-or", ",", ")"):
            if self._peek() in ("-a", "-and"):
                self.at += 1
            left = ("and", left, self._one(depth))
        return left

    def _one(self, depth):
        word = self._take()
        if depth > 40:
            self.broken = True
            return ("true",)
        if word in ("!", "-not"):
            return ("not", self._one(depth + 1))
        if word == "(":
            inner = self._either(depth + 1)
            self.broken = self.broken or self._take() != ")"
            return inner
        if word in _OPTIONS_ONE:
            value = self._take()
            if word != "-regextype":
                if not value.isdecimal():
                    self.broken = True
                elif word == "-maxdepth":
                    self.deepest = int(value)
                else:
                    self.shallowest = int(value)
            return ("true",)
        if word in _OPTIONS:
            self.depth_first = self.depth_first or word in ("-depth", "-d")
            self.follows = self.follows or word == "-follow"
            return ("true",)
        if word in RUNS:
            words = []
            while self.at < len(self.words):
                words.append(self._take())
                if words[-1] == ";" or (words[-1] == "+" and words[-2:-1] == ["{}"]):
                    break
            return self._act(word, words)
        if word in _TO_FILE:
            return self._act(word, [self._take() for _ in range(_TO_FILE[word])])
        if word == "-printf":
            return self._act(word, [self._take()])
        if word in _PRINTS or word in ("-delete", "-prune", "-quit"):
            if word == "-delete":
                self.depth_first = True
            return self._act(word, [])
        if word in _ONE or word.startswith("-newer"):
            return ("is", word, self._take())
        if word not in ("-empty", "-readable", "-writable", "-executable", "-true", "-false", "-nouser", "-nogroup"):
            self.broken = True
        return ("is", word, "")

    def _act(self, kind, words):
        action = Action(kind, words, len(self.actions))
        self.actions.append(action)
        return ("act", action)


def _holds(test: str, value: str, spelled: str, whole: str, expression):
    """True, False, or None where it cannot be told."""
    if "\0" in value:
        return None
    if test in ("-true", "-false"):
        return test == "-true"
    if test in ("-name", "-iname"):
        name = spelled.rstrip("/").rpartition("/")[2] or spelled
        return match(name.lower(), value.lower()) if test == "-iname" else match(name, value)
    if test in ("-path", "-wholename"):
        return match(spelled, value)
    if test in ("-ipath", "-iwholename"):
        return match(spelled.lower(), value.lower())
    if test in ("-regex", "-iregex", "-context", "-fstype"):
        return None
    try:
        return _of_inode(test, value, whole, expression)
    except (OSError, ValueError, KeyError):
        return None


def _of_inode(test: str, value: str, whole: str, expression):
    import stat

    try:
        found = os.stat(whole) if expression.follows else os.lstat(whole)
    except OSError:
        return None
    if test == "-type":
        letters = {
            "f": stat.S_ISREG,
            "d": stat.S_ISDIR,
            "l": stat.S_ISLNK,
            "p": stat.S_ISFIFO,
            "s": stat.S_ISSOCK,
        }
        return any(letters[letter](found.st_mode) for letter in value.split(",") if letter in letters)
    if test == "-empty":
        if stat.S_ISDIR(found.st_mode):
            return not os.listdir(whole)
        return stat.S_ISREG(found.st_mode) and not found.st_size
    if test == "-newermt":
        import time

        return found.st_mtime > time.mktime(time.strptime(value, "%Y-%m-%d"))
    if test in ("-newer", "-anewer", "-cnewer"):
        if test != "-newer":
            return None
        other = os.stat(os.path.join(expression.folder or "/", value))
        return found.st_mtime_ns > other.st_mtime_ns
    if test in ("-mtime", "-mmin"):
        import time

        ago = (time.time() - found.st_mtime) / (86400 if test == "-mtime" else 60)
        return _compared(int(ago), value) if test == "-mtime" else _compared(int(-(-ago // 1)), value)
    if test == "-size":
        unit = {"c": 1, "w": 2, "b": 512, "k": 1024, "M": 1 << 20, "G": 1 << 30}.get(value[-1:], 512)
        number = value if value[-1:].isdecimal() else value[:-1]
        return _compared(-(-found.st_size // unit), number)
    if test in ("-readable", "-writable", "-executable"):
        return os.access(whole, {"-r": os.R_OK, "-w": os.W_OK, "-e": os.X_OK}[test[:2]])
    if test == "-links":
        return _compared(found.st_nlink, value)
    if test == "-inum":
        return _compared(found.st_ino, value)
    return None


def _compared(number: int, value: str) -> bool:
    """``+n``: more; ``-n``: less; ``n``: exactly."""
    if value.startswith("+"):
        return number > int(value[1:])
    if value.startswith("-"):
        return number < int(value[1:])
    return number == int(value)

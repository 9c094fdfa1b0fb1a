"""Goes through a script as a shell would, without running any of it.

A branch that may be taken is walked like one that is; what the branches leave behind is merged. Loops over names
that are known go round for each. Time and steps are bounded: what is left then becomes a guess.
"""

import os
import time

from swarm_hook_core.effects import globs
from swarm_hook_core.effects.call import LONGEST_BY, Call
from swarm_hook_core.effects.grammar import GrammarMissing, parse
from swarm_hook_core.effects.model import UNKNOWN, Effects, Found, Guess, Stream, Tree, Write, absolute, is_known
from swarm_hook_core.effects.quoting import DEEPEST, NAME_LETTERS, TooLong
from swarm_hook_core.effects.scope import Input, Scope
from swarm_hook_core.effects.skeleton import Arithmetic, Redirect, Test, unit_of
from swarm_hook_core.effects.words import document, fields, pattern, value

SECONDS = 0.025  # of this thread's processor time, so that a busy machine changes no answer
SECONDS_TO_LOAD = 0.05  # on top of that, for what a program imports when it is first met
MOST_STEPS = 4000
MOST_ROUNDS = 40  # of one loop; the names beyond go through it as one
DEEPEST_STATEMENT = 60
LONGEST_READ = 64 * 1024  # bytes of a file that is read: a script, a list of names
MOST_TEXT = 256 * 1024  # characters of a stream

ASKS = frozenset("test [ grep egrep fgrep rg which type hash diff cmp pgrep command".split())
DECLARERS = ("export", "local", "declare", "typeset", "readonly")
SHELLS = ("sh", "bash", "zsh", "dash", "ksh")
# Names of programs that a file of the project may have as well: `./test` is not `test`.
_COMMON_NAMES = frozenset("test [ install watch script make true false echo sort patch view time env run w".split())


class Names:
    """A mark's meaning: one of these texts. `all_of`: each of them in turn (a loop), or just one, nobody knows which."""

    __slots__ = ("texts", "all_of")

    def __init__(self, texts, all_of):
        self.texts = texts
        self.all_of = all_of


class Walk:
    """A walk that adds to `effects`. See the package's docstring; programs use the public methods."""

    def __init__(self, effects: Effects, folder: str, environment):
        self.effects = effects
        self.environment = environment
        self.scope = Scope(folder and os.path.normpath(folder), ["bash"])  # None: nobody knows where it runs
        if environment.get("SHELL", "").endswith("/zsh"):
            self.scope.options.add("globstar")
        self.known: dict = {}  # inner texts of substitutions -> their Units
        self.contents: dict = {}  # absolute path -> Stream that this script wrote there, or None
        self.marks: dict = {}  # mark -> list of Found, or Names
        self.unit = None
        self.depth = 0
        self.steps = 0
        self.fresh = 0  # temporary names given out
        self.met: set = set()  # programs met so far
        self.last_word = UNKNOWN  # of the last command: ``$_``
        self.end = time.thread_time() + SECONDS

    # What programs use

    def script(self, text: str) -> None:
        """Walk a whole script. Raises GrammarMissing only."""
        try:
            parse(b":")  # loads the grammar; the clock runs from here
            self.end = time.thread_time() + SECONDS
            self.nested_in(self.scope, text.replace("\0", ""))
        except (TooLong, RecursionError, MemoryError):
            self.guess(self.scope, "too long to be followed", "")
        except GrammarMissing:
            raise
        except Exception as error:
            self.guess(self.scope, f"not understood ({type(error).__name__})", "")

    def nested(self, text: str, folder=None, words=(), stdin=None):
        """Walk script `text` in a shell of its own (``bash -c``), and give the Stream it prints, or None."""
        scope = self.scope.fork()
        if folder != scope.folder:
            scope.folder = folder
        if words:
            scope.words = list(words)
        if stdin is not None:
            scope.stdin = Input(stdin)
        return self.nested_in(scope, text)

    def run(self, words: list[str], stdin=None, folder=None):
        """Run the simple command `words`, already expanded, and give the Stream it prints, or None."""
        if not words:
            return None
        scope = self.scope.fork()
        if folder != scope.folder:
            scope.folder = folder
        if stdin is not None:
            scope.stdin = Input(stdin)
        return self.simple(scope, words)

    def write(self, path: str, folder, by: str, keeps_text: bool = False) -> None:
        """`path`, a word, is written, made or removed by what runs in `folder`."""
        if not path:
            return
        if not is_known(path):
            found = self.found(path, folder)
            if found is None:
                start, slash, _ = path.partition("\0")[0].rpartition("/")
                where = absolute(folder, start + slash) if slash else folder
                if not (where or "").startswith("/dev/"):
                    self.effects.add(self.effects.guesses, Guess("a computed path", where or "", by))
                return
            for one in found:
                self.effects.add(self.effects.trees, Tree(one.root, by, one.admits))
            return
        whole = absolute(folder, path)
        if whole is None:
            self.effects.add(self.effects.guesses, Guess("a path in a folder that is not known", "", by))
        elif not whole.startswith("/dev/"):
            if not keeps_text:
                self.contents[whole] = None
            self.effects.add(self.effects.writes, Write(folder or "/", path, by))

    def found(self, word: str, folder=None):
        """The Founds that `word` as a whole stands for, or None: for a mark, and for a mark between known texts."""
        if "\0" not in word:
            return None
        before, _, rest = word.partition("\0")
        name, _, after = rest.partition("\0")
        meaning = self.marks.get("\0" + name + "\0")
        if meaning is None or "\0" in after:
            return None
        if isinstance(meaning, Names):
            base = self.scope.folder if folder is None else folder
            paths = [absolute(base, before + text + after) for text in meaning.texts if before + text + after]
            if None in paths or not paths:
                return None
            return [Found(os.path.commonpath(paths), _one_of(frozenset(paths), True if meaning.all_of else None))]
        if not before and not after:
            return meaning
        if before and not before.endswith("/"):
            return None
        if before:  # `build/$f`: what the names are seen from is not known
            start = absolute(self.scope.folder if folder is None else folder, before)
            return None if start is None else [Found(start, lambda _path: None)]
        return [Found(one.root, _with_end(one.admits, after)) for one in meaning]

    def mark(self, found) -> str:
        """A new mark that stands for `found`: a Found, or a list of them."""
        return self._marked(found if isinstance(found, list) else [found])

    def shown(self, word: str) -> str:
        """`word` for people: its marks made readable."""
        if "\0" not in word:
            return word
        return "".join(part if place % 2 == 0 else "…" for place, part in enumerate(word.split("\0")))

    def text_of(self, path: str, folder=None):
        """The Stream of what file `path` holds: as this script has written it, else as it is on the disk; or None."""
        whole = absolute(folder, path)
        if whole is None:
            return None
        if whole in self.contents:
            return self.contents[whole]
        try:
            if not os.path.isfile(whole):
                return None
            if os.path.getsize(whole) > LONGEST_READ:
                return Stream(None, file=whole)
            with open(whole, "rb") as file:
                data = file.read(LONGEST_READ + 1)
        except (OSError, ValueError):
            return None
        self.spend(5)
        return Stream(data.decode("utf-8", "surrogateescape").replace("\0", "\n"), file=whole)

    def is_missing(self, path: str) -> bool:
        """Whether there is nothing at absolute `path`, and nothing that this script did so far may have put it there."""
        effects, inside = self.effects, path + "/"
        if os.path.lexists(path) or effects.guesses or effects.git or effects.runs:
            return False
        made = [absolute(one.folder, one.path) or "/" for one in effects.writes] + [one.root for one in effects.trees]
        return not any(
            one == path or one.startswith(inside) or inside.startswith(one.rstrip("/") + "/") for one in made
        )

    # State that words need

    def spend(self, steps: int = 1) -> None:
        """Raises TooLong where the walk has gone on for long enough."""
        self.steps += steps
        if self.steps > MOST_STEPS or time.thread_time() > self.end:
            raise TooLong

    def guess(self, scope, why: str, by: str) -> None:
        self.effects.add(self.effects.guesses, Guess(why, scope.folder or "", by[:LONGEST_BY]))

    def variable(self, scope, name: str):
        """What variable `name` holds: text, list, dict, or None where it is not set as far as is known."""
        held = scope.variables.get(name)
        if held is not None or name in scope.variables:
            return held
        if name == "PWD":
            return scope.folder or UNKNOWN
        if name == "OLDPWD":
            return scope.previous or UNKNOWN
        if name in _COMPUTED:
            return UNKNOWN
        if name == "_":
            return self.last_word
        return self.environment.get(name)

    def parameter(self, scope, name: str, missing=UNKNOWN):
        """The text of ``$name``, or a list for ``$@``. `missing`: for one that is not set here; a profile may set it."""
        if name.isdecimal():
            place = int(name) if len(name) < 6 else 99999
            if place < len(scope.words):
                return scope.words[place]
            return UNKNOWN if UNKNOWN in scope.words[1:] else "" if missing is UNKNOWN else missing
        if name in ("@", "*"):
            return scope.words[1:]
        if name == "#":
            return str(len(scope.words) - 1) if UNKNOWN not in scope.words else UNKNOWN
        if name == "?":
            return {True: "0", False: "1"}.get(scope.status, UNKNOWN)
        if name in ("$", "!", "-"):
            return UNKNOWN
        if name == "_":
            return scope.last
        held = self.variable(scope, name)
        if isinstance(held, list):
            return held[0] if held else ""
        if isinstance(held, dict):
            return held.get("0", "")
        return missing if held is None else held

    def separators(self, scope) -> str:
        held = scope.variables.get("IFS")
        return held if isinstance(held, str) and is_known(held) else " \t\n"

    def listed(self, scope, wanted: str) -> list[str]:
        """The names that a shell pattern stands for; one mark where they are too many."""
        self.spend(2)
        names = globs.expand(wanted, scope.folder, scope.options, self.spend)
        if names is not None:
            return names
        if scope.folder is None and not wanted.startswith("/"):
            return [UNKNOWN]
        parts = wanted.split("/")
        fixed = 0
        while fixed < len(parts) - 1 and not globs.is_magic(parts[fixed], True):
            fixed += 1
        root = absolute(scope.folder, globs.literal("/".join(parts[:fixed]) + "/" * bool(fixed)) or ".")
        return [self.mark(Found(root, globs.admits(wanted, scope.folder, scope.options)))]

    def substituted(self, scope, inner: str) -> str:
        """What ``$(inner)`` stands for; its effects count."""
        if inner.lstrip().startswith("<") and not inner.lstrip().startswith("<("):
            inner = "cat " + inner
        stream = self.nested_in(scope.fork(), inner)
        if stream is None:
            return UNKNOWN
        if stream.text is not None:
            return stream.text.rstrip("\n") if len(stream.text) <= MOST_TEXT else UNKNOWN
        return UNKNOWN if stream.found is None else self.mark(stream.found)

    def process(self, scope, inner: str, writes: bool) -> str:
        """A path that stands for ``<(inner)`` or ``>(inner)``."""
        stream = self.nested_in(scope.fork(), inner)
        self.fresh += 1
        path = f"/dev/fd/{63 + self.fresh}"
        if not writes:
            self.contents[path] = stream
        return path

    def computed(self, scope, text: str) -> str:
        """The number that arithmetic `text` (raw) amounts to, or UNKNOWN."""
        from swarm_hook_core.effects.arithmetic import computed

        return computed(self, scope, value(self, scope, '"' + text.replace('"', "") + '"') if "$" in text or "`" in text else text)

    def has_found(self, text: str) -> bool:
        """Whether there is a mark in `text` that stands for names."""
        return "\0" in text and any(place % 2 and part != "?" for place, part in enumerate(text.split("\0")))

    def renamed(self, text: str, change, operator: str, argument: str, otherwise=UNKNOWN) -> str:
        """A mark for the names of `text` after ``${name<operator><argument>}``, where `change(name)` does that to one;
        `otherwise` where they cannot be told."""
        meaning = self.marks.get(text)
        if isinstance(meaning, Names):
            return self._marked(Names([change(one) for one in meaning.texts], meaning.all_of))
        if isinstance(meaning, list) and operator in ("%", "%%") and not set("*?[\\'\"$`").intersection(argument):
            return self.mark([Found(one.root, _without_end(one.admits, argument)) for one in meaning])
        return otherwise

    def each_of(self, texts: list) -> str:
        """A mark that stands for each of `texts` in turn."""
        return self._marked(Names(list(texts), all_of=True))

    def one_of(self, texts: list) -> str:
        """A text that is one of `texts`, nobody knows which."""
        flat: list = []
        for text in texts:
            meaning = self.marks.get(text)
            flat += meaning.texts if isinstance(meaning, Names) else [text]
        flat = list(dict.fromkeys(flat))
        if len(flat) > 16 or not all(map(is_known, flat)):
            return UNKNOWN
        return self._marked(Names(flat, all_of=False))

    def _marked(self, meaning) -> str:
        mark = f"\0{len(self.marks)}\0"
        self.marks[mark] = meaning
        return mark

    # Scripts and statements

    def nested_in(self, scope, text: str):
        """Walk script `text` in `scope`, and give the Stream it prints, or None."""
        self.depth += 1
        before = self.scope, self.unit
        self.scope = scope
        try:
            if self.depth > DEEPEST:
                raise TooLong
            unit = unit_of(text, self.known)
            self.spend(3)
            root = parse(unit.code.encode())
            if root is None:
                self.guess(scope, "too long to be read", "")
                return None
            self.unit = unit
            if root.has_error or unit.broken:
                self.guess(scope, "not understood as shell", " ".join(text.split()))
            return self.sequence(root.children, scope)
        finally:
            self.scope, self.unit = before
            self.depth -= 1

    def sequence(self, nodes, scope):
        """Statements one after the other."""
        printed: list = []
        for place, node in enumerate(nodes):
            if not node.is_named:
                continue
            if scope.ended:
                break
            background = place + 1 < len(nodes) and nodes[place + 1].type == "&"
            printed.append(self.statement(node, scope.fork() if background else scope))
        return joined(printed)

    def statement(self, node, scope):
        """One node of the tree; the Stream it prints, or None where that is not known."""
        self.spend()
        self.depth += 1
        if self.depth > DEEPEST_STATEMENT:
            raise TooLong
        before, self.scope = self.scope, scope
        try:
            handle = _STATEMENTS.get(node.type)
            if handle is not None:
                return handle(self, node, scope)
            if node.type == "ERROR":
                return self.sequence([one for one in node.children if one.type in _STATEMENTS], scope)
            return Stream("")
        finally:
            self.scope = before
            self.depth -= 1

    def chain(self, node, scope):
        """``a && b || c``, which the tree nests to the left."""
        parts: list = []
        while node.type == "list" and len(node.children) == 3:
            left, operator, right = node.children
            parts.append((operator.type, right))
            node = left
        came_from = scope.folder
        printed = [self.statement(node, scope)]
        for operator, right in reversed(parts):
            if scope.ended:
                break
            goes_on = scope.status if operator == "&&" else None if scope.status is None else not scope.status
            asked = scope.predicate
            other = scope.fork()
            if operator == "||":
                other.folder = came_from  # a `cd` that failed has gone nowhere
            came_from = other.folder
            printed.append(self.statement(right, other))
            if goes_on is True or (goes_on is None and operator == "&&" and not asked):
                scope.adopt(other)
            elif goes_on is None:
                before = scope.fork()
                scope.merge([before, other], self.one_of)
                scope.status = None
        return joined(printed)

    def pipeline(self, node, scope):
        stream, first, several = None, True, False
        for one in node.children:
            if not one.is_named:
                continue
            inside = scope.fork()
            if not first:
                inside.stdin = Input(stream)
            stream = self.statement(one, inside)
            several = not first
            first = False
        scope.status, scope.predicate = None, several and inside.predicate
        return stream

    def subshell(self, node, scope):
        inside = scope.fork()
        stream = self.sequence(node.children, inside)
        scope.status, scope.predicate = inside.status, inside.predicate
        return stream

    def braces(self, node, scope):
        """``{ a; }``, and what the skeleton put into braces for the sake of its redirections."""
        nodes = [one for one in node.children if one.type not in "{}"]
        redirects = self.entries(nodes[0]) if nodes and nodes[0].type == "command" else []
        if not redirects or not all(isinstance(one, Redirect) and one.of_compound for one in redirects):
            return self.sequence(nodes, scope)
        return self.redirected(redirects, scope, "a block", lambda: self.sequence(nodes[1:], scope))

    def branches(self, node, scope):
        """if, elif, else."""
        printed, after, taken = [], [], False
        part, conditions, last = "condition", [], None

        def body(nodes, decided):
            nonlocal taken
            inside = scope.fork()
            printed.append(self.sequence(nodes, inside))
            if not taken and decided is not False:
                after.append(inside)
                taken = decided is True

        def visit(clause):
            nonlocal part, conditions, last
            here: list = []
            decided = None
            for child in clause.children:
                if child.type in ("if", "elif"):
                    here, part = [], "condition"
                elif child.type == "then":
                    self.sequence(here, scope)
                    decided = scope.status
                    here, part = [], "body"
                elif child.type in ("elif_clause", "else_clause", "fi"):
                    if part == "body":
                        body(here, decided)
                        part = ""
                    if child.type == "elif_clause":
                        visit(child)
                    elif child.type == "else_clause":
                        body(child.children[1:], None if not taken else False)
                        last = child
                else:
                    here.append(child)
            if part == "body":
                body(here, decided)
                part = ""

        visit(node)
        if last is None and not taken:
            after.append(scope.fork())
        if after:
            scope.merge(after, self.one_of)
        scope.status, scope.predicate = None, False
        return joined(printed)

    def cases(self, node, scope):
        subject = self.word(scope, node.child_by_field_name("value"))
        printed, after, sure = [], [], False
        for item in node.children:
            if item.type != "case_item":
                continue
            patterns, body = [], []
            for child in item.children_by_field_name("value"):
                patterns.append(self.raw(child))
            values = {child.id for child in item.children_by_field_name("value")}
            body = [child for child in item.children if child.is_named and child.id not in values]
            hit = None
            if is_known(subject):
                wanted = [pattern(self, scope, raw) for raw in patterns]
                hit = any(globs.match(subject, one, True) for one in wanted) if all(map(is_known, wanted)) else None
            inside = scope.fork()
            printed.append(self.sequence(body, inside))
            if not sure and hit is not False:
                after.append(inside)
                sure = hit is True or patterns == ["*"]
        if not sure:
            after.append(scope.fork())
        scope.merge(after, self.one_of)
        scope.status, scope.predicate = None, False
        return joined(printed)

    def each(self, node, scope):
        """for, select."""
        name = self.table(node.child_by_field_name("variable"))
        words: list[str] = []
        for child in node.children_by_field_name("value"):
            words += fields(self, scope, self.table(child))
        body = node.child_by_field_name("body")
        if body is None:
            return None
        if len(words) > MOST_ROUNDS:
            rest = words[MOST_ROUNDS // 2 :]
            if all(map(is_known, rest)):
                words[MOST_ROUNDS // 2 :] = [self.each_of(rest)]
        printed: list = []
        for word in words:
            scope.variables[name] = word
            printed.append(self.statement(body, scope))
            if self.left_loop(scope):
                break
        if words and self.has_found(words[-1]):
            scope.variables[name] = UNKNOWN
        return joined(printed)

    def rounds(self, node, scope):
        """while, until, and the counting for."""
        conditions = [one for one in node.children_by_field_name("condition") if one.is_named]
        body = node.child_by_field_name("body")
        until = node.children[0].type == "until"
        step = self.step_of(conditions)
        printed: list = []
        for _round in range(MOST_ROUNDS):
            self.sequence(conditions, scope)
            decided = scope.status if not until or scope.status is None else not scope.status
            if scope.ended or decided is False or body is None:
                break
            if decided is None:  # how often it goes round, nobody knows: once as it is, once with what that changed
                before = scope.fork()
                printed.append(self.statement(body, scope))
                if not self.left_loop(scope):
                    changed = self.forget_changed(before, scope)
                    if changed:
                        self.sequence(conditions, scope)
                        printed.append(self.statement(body, scope))
                        self.left_loop(scope)
                    scope.merge([before, scope.fork()], self.one_of)
                printed.append(None)
                break
            printed.append(self.statement(body, scope))
            if self.left_loop(scope):
                break
            if step:
                self.computed(scope, step)
        else:
            self.guess(scope, "a long loop", "")
        scope.status = None
        return joined(printed)

    def step_of(self, conditions) -> str:
        entries = self.entries(conditions[0]) if conditions and conditions[0].type == "command" else []
        return entries[0].step if entries and isinstance(entries[0], Arithmetic) else ""

    def forget_changed(self, before, scope) -> bool:
        """Variables that a round of a loop has changed may hold anything in the next."""
        changed = [name for name in scope.variables if before.variables.get(name) != scope.variables[name]]
        for name in changed:
            if not self.has_found(str(scope.variables[name])):
                scope.variables[name] = UNKNOWN
        if scope.folder != before.folder:
            scope.folder = None
            return True
        return bool(changed)

    def left_loop(self, scope) -> bool:
        """Whether the body ended in a way that ends the loop; `break` and `continue` end with it."""
        ended = scope.ended
        if ended in ("break", "continue"):
            scope.ended = ""
        return ended not in ("", "continue")

    def define(self, node, scope):
        name = self.table(node.child_by_field_name("name"))
        body = node.child_by_field_name("body")
        if body is not None:
            scope.functions[name] = (self.unit, body)
        scope.status = True
        return Stream("")

    def negated(self, node, scope):
        stream = self.sequence(node.children, scope)
        scope.status = None if scope.status is None else not scope.status
        return stream

    # Simple commands

    def table(self, node):
        """The entry of the skeleton's table that `node` (``w12``) stands for."""
        if node is None:
            return ""
        first, last = node.start_byte, node.end_byte
        number = self.unit.code[first + 1 : last]
        return self.unit.table[int(number)] if number.isdecimal() else self.unit.code[first:last]

    def raw(self, node) -> str:
        entry = self.table(node)
        return entry if isinstance(entry, str) else ""

    def word(self, scope, node) -> str:
        return value(self, scope, self.raw(node))

    def entries(self, node) -> list:
        """What stands in a simple command, in order."""
        return [self.table(one) for one in node.children if one.is_named and one.type != "ERROR"]

    def command(self, node, scope):
        entries = self.entries(node)
        raws = [one for one in entries if isinstance(one, str)]
        redirects = [one for one in entries if isinstance(one, Redirect)]
        scope.predicate = False
        special = next((one for one in entries if isinstance(one, (Test, Arithmetic))), None)
        if special is not None:
            work = lambda: self.asked(special, scope)  # noqa: E731
            return self.redirected(redirects, scope, "", work) if redirects else work()
        assigned = 0
        while assigned < len(raws) and _assignment(raws[assigned]):
            assigned += 1
        if assigned == len(raws):
            for raw in raws:
                self.assign(scope, raw)
            scope.status = True
            return self.redirected(redirects, scope, "", lambda: Stream("")) if redirects else Stream("")
        if raws[assigned] in DECLARERS and raws[assigned] not in scope.functions:
            from swarm_hook_core.effects.builtins import declare

            declare(self, scope, raws[assigned:])
            return self.redirected(redirects, scope, raws[assigned], lambda: Stream("")) if redirects else Stream("")
        words: list[str] = []
        for raw in raws[assigned:]:
            words += fields(self, scope, raw)
        if not words:  # `$empty`
            return self.redirected(redirects, scope, "", lambda: Stream("")) if redirects else Stream("")
        kept: dict = {}
        for raw in raws[:assigned]:
            name = raw.partition("=")[0].rstrip("+").partition("[")[0]
            kept.setdefault(name, scope.variables.get(name))
            self.assign(scope, raw)
        self.last_word = words[-1]
        try:
            if not redirects:
                return self.simple(scope, words)
            if words == ["exec"]:
                return self.redirected(redirects, scope, "exec", lambda: Stream(""), lasting=True)
            return self.redirected(redirects, scope, " ".join(map(self.shown, words)), lambda: self.simple(scope, words))
        finally:
            for name, held in kept.items():
                if held is None:
                    scope.variables.pop(name, None)
                else:
                    scope.variables[name] = held

    def asked(self, entry, scope):
        """``[[ ]]`` and ``(( ))``."""
        scope.predicate = True
        if isinstance(entry, Arithmetic):
            number = self.computed(scope, entry.raw)
            scope.status = number != "0" if is_known(number) else None
            return Stream("")
        from swarm_hook_core.effects.conditions import answer

        words, patterns = [], {}
        for raw in _test_words(entry.raw, self.known):
            if words and words[-1] in ("=", "==", "!="):
                patterns[len(words)] = pattern(self, scope, raw)
            words.append(value(self, scope, raw))
        scope.status = answer(self, scope, words, patterns)
        return Stream("")

    def assign(self, scope, raw: str) -> None:
        """``name=value``, ``name+=value``, ``name[i]=value``, ``name=(a b)``."""
        left, _, right = raw.partition("=")
        adds = left.endswith("+")
        name, bracket, index = left.rstrip("+").partition("[")
        if bracket:
            index = index.rstrip("]")
            self.assign_element(scope, name, index, value(self, scope, right), adds)
            return
        if right.startswith("(") and right.endswith(")"):
            listed = self.array(scope, right[1:-1], scope.variables.get(name))
            held = scope.variables.get(name) if adds else None
            if isinstance(listed, list) and isinstance(held, (list, str)):
                listed = ([held] if isinstance(held, str) else held) + listed
            scope.variables[name] = listed
            return
        text = value(self, scope, right)
        held = self.variable(scope, name) if adds else None
        if isinstance(held, list):
            scope.variables[name] = [*held[:-1], held[-1] + text] if held else [text]
        else:
            scope.variables[name] = (held or "") + text if adds and not isinstance(held, dict) else text

    def assign_element(self, scope, name, index, text, adds) -> None:
        held = scope.variables.get(name)
        if isinstance(held, dict):
            key = value(self, scope, index)
            scope.variables[name] = {**held, key: held.get(key, "") + text if adds else text}
            return
        number = self.computed(scope, index)
        listed = list(held) if isinstance(held, list) else [] if held is None else [held]
        if not is_known(number) or not -len(listed) <= int(number) <= 1000:
            scope.variables[name] = [*listed, UNKNOWN]
            return
        place = int(number)
        listed += [""] * (place + 1 - len(listed))
        listed[place] = listed[place] + text if adds else text
        scope.variables[name] = listed

    def array(self, scope, inner: str, held):
        """A list; a dict where all is ``[key]=value`` and the variable was declared so."""
        raws = _test_words(inner, self.known)
        if isinstance(held, dict):
            found = dict(held)
            for raw in raws:
                key, mark, text = raw.partition("]=")
                if mark and key.startswith("["):
                    found[value(self, scope, key[1:])] = value(self, scope, text)
            return found
        listed: list = []
        for raw in raws:
            self.spend()
            key, mark, text = raw.partition("]=")
            listed += [value(self, scope, text)] if mark and key.startswith("[") else fields(self, scope, raw)
        return listed

    def simple(self, scope, words: list[str]):
        """Run `words` in `scope`: a function, a builtin of the shell, or a program."""
        self.spend()
        before, self.scope = self.scope, scope
        self.depth += 1
        try:
            if self.depth > DEEPEST_STATEMENT:
                raise TooLong
            return self._simple(scope, words)
        finally:
            self.scope = before
            self.depth -= 1

    def _simple(self, scope, words: list[str]):
        name = words[0]
        scope.status, scope.predicate, scope.tried = None, name in ASKS, None
        if name in scope.functions:
            return self.function(scope, words)
        if name in scope.aliases and self.depth < 20:
            text = scope.aliases[name]
            kept, scope.words = scope.words, ["bash", *words[1:]]
            aliases, scope.aliases = scope.aliases, {one: scope.aliases[one] for one in scope.aliases if one != name}
            try:
                return self.nested_in(scope, text + ' "$@"')
            finally:
                scope.words, scope.aliases = kept, aliases
        from swarm_hook_core.effects.builtins import BUILTINS

        before, scope.last = scope.last, words[-1]
        try:
            if name in BUILTINS:
                return BUILTINS[name](self, scope, words)
            return self.program(scope, words)
        except (TooLong, GrammarMissing, RecursionError, MemoryError):
            raise
        except Exception as error:  # what goes wrong with one command must not take the rest with it
            scope.last = before
            self.guess(scope, f"not understood ({type(error).__name__})", " ".join(map(self.shown, words)))
            return None

    def function(self, scope, words):
        unit, body = scope.functions[words[0]]
        kept_words, kept_locals, kept_unit = scope.words, scope.locals, self.unit
        scope.words, scope.locals = [kept_words[0], *words[1:]], {}
        self.unit = unit
        try:
            stream = self.statement(body, scope)
        finally:
            self.unit = kept_unit
            for name, held in (scope.locals or {}).items():
                if held is None:
                    scope.variables.pop(name, None)
                else:
                    scope.variables[name] = held
            scope.words, scope.locals = kept_words, kept_locals
        if scope.ended == "return":
            scope.ended = ""
        return stream

    def program(self, scope, words):
        name = words[0]
        base = name.rpartition("/")[2] if is_known(name) else self.shown(name)
        call = Call(self, base, words[1:], scope.folder, scope.stdin.rest())
        if not is_known(name):
            call.guess("a computed command")
            return None
        if words[1:] in (["--help"], ["--version"]) or not call.name:
            return None
        if "/" in name:
            script = self.script_text(scope, name, call.name)
            if script is not None:
                return self.own_shell(scope, script, words)
        does = self.loaded(call.name)
        if does is None or (name.startswith(".") and call.name in _COMMON_NAMES):
            call.guess(self.unknown(scope, name))
            return None
        if call.name in self.met:
            does(call)
            return call.output
        self.met.add(call.name)
        before, start = self.end, time.thread_time()
        self.end += SECONDS_TO_LOAD  # it may import what it needs
        try:
            does(call)
        finally:
            self.end = before + min(SECONDS_TO_LOAD, time.thread_time() - start)
        return call.output

    def loaded(self, name: str):
        """``programs.program``; what importing a family takes is not held against the script."""
        from swarm_hook_core.effects.programs import program

        before = time.thread_time()
        does = program(name)
        self.end += time.thread_time() - before
        return does

    def own_shell(self, scope, text: str, words: list[str]):
        """A script file that is run."""
        inside = scope.fork()
        inside.words = list(words)
        inside.functions, inside.aliases, inside.options = {}, {}, set()
        return self.nested_in(inside, text)

    def unknown(self, scope, name: str) -> str:
        whole = absolute(scope.folder, name) if "/" in name else None
        if whole is not None and os.path.isfile(whole):
            return "an opaque script"
        return f"{self.shown(name)} is not known"

    def script_text(self, scope, name: str, base: str):
        """The text of the shell script that command `name` runs, or None."""
        from swarm_hook_core.effects.programs import FAMILY_OF

        if base in FAMILY_OF and base not in _COMMON_NAMES:
            return None
        stream = self.text_of(name, scope.folder)
        if stream is None or stream.text is None or not is_known(stream.text):
            return None
        return stream.text if is_shell_script(stream.text, base) else None

    # Redirections

    def redirected(self, redirects, scope, by: str, work, lasting=False):
        """Do `work()` with `redirects` in place; what it prints that is not caught by one of them."""
        kept = scope.stdin
        caught, appends = None, False
        to_nowhere = False
        for one in redirects:
            kind = one.operator
            if kind in ("<<", "<<-"):
                body = one.body or ""
                quoted = any(letter in one.word for letter in "\\'\"")
                text = body if quoted or not set("$`\\").intersection(body) else document(self, scope, body)
                if one.fd in ("", "0"):
                    scope.stdin = Input(Stream(text))
                continue
            if kind == "<<<":
                scope.stdin = Input(Stream(value(self, scope, one.word) + "\n"))
                continue
            target = self.target(scope, one.word)
            if kind in ("<&", ">&") and (target == "-" or target.rstrip("-").isdecimal()):
                if kind == ">&" and one.fd in ("", "1") and target not in ("1",):
                    to_nowhere = True
                continue
            if kind == ">&" and not is_known(target) and (one.fd or one.word.startswith("$")):
                continue  # `>&$fd`
            if kind == "<" or kind == "<&":
                if one.fd in ("", "0"):
                    scope.stdin = Input(self.text_of(target, scope.folder))
                continue
            self.write(target, scope.folder, self.redirection_by(by, kind, target))
            if kind != "<>" and one.fd in ("", "1"):
                caught, appends = absolute(scope.folder, target) or "", kind in (">>", "&>>")
        try:
            stream = work()
        finally:
            if not lasting:
                scope.stdin = kept
        if caught:
            if appends:
                held = self.text_of(caught) if self.contents.get(caught) or not os.path.exists(caught) else None
                stream = joined([held, stream]) if held is not None else None
            if not caught.startswith("/dev/"):
                self.contents[caught] = stream
        return Stream("") if caught is not None or to_nowhere else stream

    def target(self, scope, raw: str) -> str:
        found = fields(self, scope, raw)
        return found[0] if len(found) == 1 else value(self, scope, raw)

    def redirection_by(self, by: str, kind: str, target: str) -> str:
        text = " ".join(f"{by} {kind} {self.shown(target)}".split())
        if len(text) <= LONGEST_BY:
            return text
        tail = f" … {kind} {self.shown(target)}"
        return text[: max(0, LONGEST_BY - len(tail))] + tail[-LONGEST_BY:]


_STATEMENTS = {
    "command": Walk.command,
    "list": Walk.chain,
    "pipeline": Walk.pipeline,
    "subshell": Walk.subshell,
    "compound_statement": Walk.braces,
    "do_group": lambda walk, node, scope: walk.sequence(node.children, scope),
    "if_statement": Walk.branches,
    "case_statement": Walk.cases,
    "for_statement": Walk.each,
    "while_statement": Walk.rounds,
    "function_definition": Walk.define,
    "negated_command": Walk.negated,
}
_COMPUTED = frozenset(
    "RANDOM SRANDOM SECONDS LINENO BASHPID PPID EPOCHSECONDS EPOCHREALTIME BASH_SOURCE FUNCNAME REPLY PIPESTATUS".split()
)


def joined(streams: list):
    """The Stream of what prints `streams` one after the other, or None where one of them is not known."""
    streams = [one for one in streams if one is None or one.text != ""]
    if not streams:
        return Stream("")
    if len(streams) == 1 or None in streams:
        return None if None in streams else streams[0]
    if all(one.text is not None for one in streams):
        text = "".join(one.text for one in streams)
        return Stream(text) if len(text) <= MOST_TEXT else None
    founds: list = []
    for one in streams:
        if one.found is None:
            return None
        founds += one.found if isinstance(one.found, list) else [one.found]
    return Stream(None, founds)


def is_shell_script(text: str, name: str) -> bool:
    """Whether `text`, of file `name`, is for a shell: by its first line, else by its name."""
    first = text.partition("\n")[0]
    if first.startswith("#!"):
        words = first[2:].replace("/usr/bin/env -S", "").split()
        return any(word.rpartition("/")[2] in SHELLS for word in words[:2])
    return name.endswith((".sh", ".bash", ".zsh"))


def _assignment(raw: str) -> bool:
    left, mark, _ = raw.partition("=")
    if not mark or not left:
        return False
    name = left[:-1] if left.endswith("+") else left
    if name.endswith("]"):
        name = name.partition("[")[0]
    return bool(name) and not name[0].isdecimal() and all(letter in NAME_LETTERS for letter in name)


def _assigned_name(raw: str) -> str:
    return raw.partition("=")[0].rstrip("+").partition("[")[0]


def _test_words(raw: str, known) -> list[str]:
    """The raw words in `raw`: of a condition, of an array."""
    from swarm_hook_core.effects.skeleton import words_in

    return words_in(raw, known)


def _one_of(paths, answer):
    return lambda path: answer if path in paths else False


def _with_end(admits, end: str):
    """Of names with `end` put behind them."""
    return lambda path: path.endswith(end) and admits(path[: -len(end)])


def _without_end(admits, end: str):
    """Of names with `end` taken away."""
    return lambda path: admits(path + end)

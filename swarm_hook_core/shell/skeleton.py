"""A script's skeleton: its operators and keywords, each word and redirection set aside in a table.

The grammar sees ``w0 w1 && { w2; }`` only. It would attach a redirection behind ``a && b`` to both, take the words
behind a redirection for part of it, and lose its way in some here-documents; in the skeleton there are none.

    cd x && tee "$y" <<EOF > z       ->   w0 w1 && w2 w3 w4 w5
    (a; b) > f                       ->   { w2; ( w0; w1 ); }
"""

from swarm_hook_core.shell.entries import Arithmetic, Redirect, Test
from swarm_hook_core.shell.quoting import ENDS_WORD, NAME_LETTERS, Quoted, TooLong

LONGEST = 256 * 1024  # characters of a script
MOST_WORDS = 6000
MOST_OPEN = 60  # compound commands within each other

_OPENERS = {"if": "fi", "while": "done", "until": "done", "for": "done", "select": "done", "case": "esac", "{": "}"}
_ENDERS = ("then", "do", "else", "elif", "fi", "done", "esac", "}")


class Unit:
    """A script that was read: `code` (the skeleton), its `table`, whether a quote in it is never closed."""

    __slots__ = ("code", "table", "broken", "end")

    def __init__(self, code, table, broken, end):
        self.code = code
        self.table = table
        self.broken = broken
        self.end = end


def unit_of(text: str, known: dict, depth: int = 0) -> Unit:
    """The Unit of script `text`. `known`: inner texts of substitutions already read; filled. Raises TooLong."""
    if text in known:
        return known[text]
    if len(text) > LONGEST:
        raise TooLong
    return _Reader(text, 0, depth, None, known).read("")


class _Compound:
    """One that is open. `opening`: its place in what was put out; `awaits`: a loop whose ``do`` has not come yet."""

    __slots__ = ("closing", "opening", "awaits", "loops", "tail", "wrapped")

    def __init__(self, closing, opening, awaits):
        self.closing = closing
        self.opening = opening
        self.awaits = awaits
        self.loops = False  # a loop whose body stands in braces
        self.tail = ""  # put out behind its closing word
        self.wrapped = False  # in braces, for its redirections


class _Reader(Quoted):
    def __init__(self, text, at, depth, places, known):
        super().__init__(text, at, depth, places)
        self.known = known
        self.table: list = []
        self.out: list[str] = []
        self.start = True  # a command may start here
        self.expect = ""  # what the grammar of for, case, function calls for next
        self.compounds: list[_Compound] = []
        self.closed_last = None  # the compound that has just been closed: redirections may follow
        self.after = False  # behind a compound or a test: keywords may follow
        self.pending: list = []  # here-documents whose bodies start at the next newline

    def read(self, closer: str) -> Unit:
        """Read up to the `closer` of a substitution, or to the end."""
        text, end = self.text, len(self.text)
        while self.at < end:
            character = text[self.at]
            if character in " \t":
                self.at += 1
            elif character == "\\" and text.startswith("\n", self.at + 1):
                self.at += 2
            elif character == "\n":
                self.at += 1
                self.separate("\n")
                if self.pending:
                    self.read_documents()
            elif character == "#":
                newline = text.find("\n", self.at)
                self.at = end if newline < 0 else newline
            elif character in ";&|":
                self.operator(character)
            elif character == "(":
                self.open_paren()
            elif character == ")":
                if closer and not self.expect and not any(one.closing == ")" for one in self.compounds):
                    return self.finished(self.at)
                self.close_paren()
            elif character in "<>" and not text.startswith("(", self.at + 1):
                self.redirection("")
            else:
                self.word()
        self.broken = self.broken or bool(closer)
        return self.finished(end)

    def finished(self, end: int) -> Unit:
        return Unit("".join(self.out), self.table, self.broken, end)

    def emit(self, piece: str) -> None:
        self.out.append(piece)

    def keep(self, entry) -> str:
        if len(self.table) >= MOST_WORDS:
            raise TooLong
        self.spend(6)
        self.table.append(entry)
        return f"w{len(self.table) - 1} "

    # Operators

    def separate(self, mark: str) -> None:
        """A newline or ``;``: nothing where no command stands before it."""
        if self.expect == "for-in" and mark == ";":  # `for x; do`: over the positional parameters
            self.emit("in " + self.keep('"$@"'))
            self.expect, self.start = "", False
        if self.start or self.expect:
            return
        self.emit(";\n")
        self.begin()

    def begin(self) -> None:
        self.start, self.closed_last, self.after = True, None, False

    def operator(self, character: str) -> None:
        text, at = self.text, self.at
        pair = text[at : at + 2]
        if pair == "&>":
            self.redirection("")
            return
        if character == ";" and pair in (";;", ";&"):
            mark = ";;&" if text.startswith(";;&", at) else pair
            self.at += len(mark)
            self.emit(mark + "\n")
            self.begin()
            self.expect = "pattern"
            return
        if pair in ("&&", "||", "|&"):
            self.at += 2
        else:
            self.at += 1
            pair = character
        if self.expect == "pattern":
            self.emit("|")
        elif pair == ";":
            self.separate(";")
        elif not self.start or pair == "&&" or pair == "||":
            self.emit({"|&": "|", "&": "&\n"}.get(pair, pair) + " ")
            self.begin()

    def open_paren(self) -> None:
        text = self.text
        if self.expect == "pattern":
            self.at += 1
        elif self.start and text.startswith("(", self.at + 1) and (end := self.arithmetic(self.at + 2)) >= 0:
            self.emit(self.keep(Arithmetic(text[self.at + 2 : end - 2])))
            self.at, self.start, self.after = end, False, True
        elif self.start:
            self.at += 1
            self.opened(")")
            self.emit("( ")
            self.begin()
        else:  # `name ()`
            close = self.at + 1
            while text[close : close + 1] in (" ", "\t"):
                close += 1
            self.at = close + 1 if text.startswith(")", close) else self.at + 1
            self.emit("() ")
            self.begin()

    def close_paren(self) -> None:
        self.at += 1
        if self.expect == "pattern":
            self.emit(") ")
            self.expect = ""
            self.begin()
            return
        self.emit(") ")
        self.close(")")

    def opened(self, closing: str, awaits: bool = False) -> None:
        if len(self.compounds) >= MOST_OPEN:
            raise TooLong
        self.compounds.append(_Compound(closing, len(self.out), awaits))

    def close(self, closing: str) -> None:
        self.start, self.after = False, True
        while self.compounds:
            last = self.compounds.pop()
            if last.closing == closing:
                self.closed_last = last
                self.emit(last.tail)
                return

    # Words

    def word(self) -> None:
        text, at = self.text, self.at
        end = self.word_end(at)
        raw = text[at:end]
        self.at = end
        if text[end : end + 1] in ("<", ">") and not text.startswith("(", end + 1):
            if raw.isdecimal() or (raw[0] == "{" and raw[-1] == "}" and _is_name(raw[1:-1])):
                self.redirection(raw)
                return
        if self.expect:
            self.expected(raw)
        elif self.start and raw in _KEYWORDS:
            self.keyword(raw)
        elif self.after and raw in _ENDERS:
            self.separate(";")
            self.keyword(raw)
        elif self.start and raw == "[[":
            end = self.test_end(end)
            self.emit(self.keep(Test(text[self.at : end - 2])))
            self.at, self.start, self.after = end, False, True
        else:
            self.emit(self.keep(raw))
            self.start = self.after = False

    def word_end(self, at: int) -> int:
        text, end, first, steps = self.text, len(self.text), at, 0
        while at < end:
            steps += 1
            character = text[at]
            if character in "\\'\"$`":
                at = self.construct(at)
            elif character not in ENDS_WORD:
                at += 1
                while text[at : at + 8].isalnum():
                    at += 8
            elif character in "<>" and at == first and text.startswith("(", at + 1):
                at = self.substitution(at + 2)
            elif character == "(" and at > first and (text[at - 1] in "@!+*?" or _assigns(text[first:at])):
                at = self.balanced(at + 1)
            else:
                break
        self.spend(steps)
        return at if at > first else at + 1

    def substitution(self, at: int) -> int:
        inner = _Reader(self.text, at, self.depth + 1, self.places, self.known)
        unit = inner.read(")")
        self.pending += inner.pending
        self.broken = self.broken or unit.broken
        self.known[self.text[at : unit.end]] = unit
        return min(unit.end + 1, len(self.text))

    def test_end(self, at: int) -> int:
        """Behind ``]]``."""
        text, end = self.text, len(self.text)
        while at < end:
            self.spend(1)
            if text[at] in "\\'\"$`":
                at = self.construct(at)
            elif text.startswith("]]", at) and text[at - 1] in " \t\n" and text[at + 2 : at + 3] in _AFTER_TEST:
                return at + 2
            else:
                at += 1
        return self.closed(-1)

    def keyword(self, raw: str) -> None:
        if raw == "!":
            at = self.blanks(self.at)
            word = (self.text[at : at + 10].split() or [""])[0].partition(";")[0]
            if word and word[0] not in ENDS_WORD | {"\\", "#"} and word not in _KEYWORDS:  # no `! { }` in the grammar
                self.emit("! ")
        elif raw == "time":
            self.skip_flag("-p")
        elif raw == "coproc":
            name_end = self.word_end(self.blanks(self.at))
            if self.text[self.blanks(name_end) : self.blanks(name_end) + 1] in ("{", "("):
                self.at = name_end
        elif raw == "{" and self.compounds and self.compounds[-1].awaits:  # `for x in a; { b; }`
            last = self.compounds[-1]
            last.awaits, last.closing, last.loops = False, "}", True
            self.emit("do ")
            self.begin()
        elif raw in _OPENERS:
            self.opened(_OPENERS[raw], awaits=raw in ("for", "select"))
            self.emit({"select": "for"}.get(raw, raw) + " ")
            self.expect = {"for": "for-name", "select": "for-name", "case": "case-word"}.get(raw, "")
            self.begin()
            if raw == "for":
                self.counting()
        elif raw == "function":
            self.emit("function ")
            self.expect = "function-name"
        elif raw in ("fi", "done", "esac", "}"):
            self.emit("done " if raw == "}" and self.compounds and self.compounds[-1].loops else raw + " ")
            self.close(raw)
        else:
            if raw == "do" and self.compounds:
                self.compounds[-1].awaits = False
            self.emit(raw + " ")
            self.begin()

    def counting(self) -> None:
        """``for ((a; b; c))``, told as ``while``."""
        at = self.blanks(self.at)
        end = self.arithmetic(at + 2) if self.text.startswith("((", at) else -1
        if end < 0:
            return
        parts = (self.text[at + 2 : end - 2].split(";") + ["", "", ""])[:3]
        opening = self.keep(Arithmetic(parts[0]))
        self.out[-1] = "{ " + opening + "; while "
        self.compounds[-1].tail = "; } "
        self.emit(self.keep(Arithmetic(parts[1].strip() or "1", parts[2])) + ";")
        self.at = self.blanks(end)
        if self.text.startswith(";", self.at):
            self.at += 1
        self.expect = ""

    def skip_flag(self, flag: str) -> None:
        at = self.blanks(self.at)
        if self.text.startswith(flag + " ", at):
            self.at = at + len(flag)

    def blanks(self, at: int) -> int:
        while self.text[at : at + 1] in (" ", "\t"):
            at += 1
        return at

    def expected(self, raw: str) -> None:
        """A word where for, case or function calls for one."""
        expect = self.expect
        if expect == "pattern" and raw == "esac":
            self.expect = ""
            self.emit("esac ")
            self.close("esac")
        elif expect == "pattern":
            self.emit(self.keep(raw))
        elif expect in ("for-in", "in") and raw == "in":
            self.emit("in ")
            self.start = False
            self.expect = "pattern" if expect == "in" else ""
            if not self.expect and self.nothing_follows():
                self.emit(self.keep(""))
        elif expect == "for-in":  # `for x do`
            self.emit("in " + self.keep('"$@"') + ";")
            self.expect = ""
            self.begin()
            self.keyword(raw)
        else:
            self.emit(self.keep(raw))
            self.expect = {"for-name": "for-in", "case-word": "in"}.get(expect, "")
            self.start = expect == "function-name"
            if self.start:
                at = self.blanks(self.at)
                if self.text.startswith("(", at) and self.text.startswith(")", self.blanks(at + 1)):
                    self.at = self.blanks(at + 1) + 1

    def nothing_follows(self) -> bool:
        return self.text[self.blanks(self.at) : self.blanks(self.at) + 1] in ("", ";", "\n")

    # Redirections

    def redirection(self, fd: str) -> None:
        text, at = self.text, self.at
        for operator in ("<<<", "<<-", "<<", "<>", "<&", "&>>", "&>", ">>", ">|", ">&", "<", ">"):
            if text.startswith(operator, at):
                break
        at = self.blanks(at + len(operator))
        while text.startswith("\\\n", at):
            at = self.blanks(at + 2)
        end = self.word_end(at) if at < len(text) and text[at] not in ENDS_WORD - {"<", ">"} else at
        self.at = end
        entry = Redirect(fd, operator, text[at:end])
        if operator in ("<<", "<<-"):
            self.pending.append(entry)
        placed = self.keep(entry)
        if self.closed_last is None:
            self.emit(placed)
            self.start = False
            return
        entry.of_compound = True
        compound = self.closed_last
        opening = self.out[compound.opening]
        if compound.wrapped:
            self.out[compound.opening] = "{ " + placed + opening[2:]
        else:
            compound.wrapped = True
            self.out[compound.opening] = "{ " + placed + "; " + opening
            self.emit("; } ")

    def read_documents(self) -> None:
        pending, self.pending = self.pending, []
        for entry in pending:
            delimiter = unquoted(entry.word)
            body = self.document(delimiter, entry.operator == "<<-")
            if entry.operator == "<<-":
                body = "\n".join(line.lstrip("\t") for line in body.split("\n"))
            entry.body = body

    def document(self, delimiter: str, dedent: bool) -> str:
        """The here-document that starts here; without its delimiter it goes to the end, as shells have it."""
        text, first = self.text, self.at
        line, needle = first, "\n" if dedent else "\n" + delimiter
        while True:
            self.spend(8)
            start = line
            while dedent and text.startswith("\t", start):
                start += 1
            after = start + len(delimiter)
            if text.startswith(delimiter, start) and text[after : after + 1] in ("", "\n"):
                self.at = min(after + 1, len(text))
                return text[first:line]
            line = text.find(needle, line) + 1
            if not line:
                self.at = len(text)
                return text[first:]


_KEYWORDS = frozenset(
    ("if then elif else fi while until do done for select case esac function { } ! time coproc").split()
)
_AFTER_TEST = frozenset(["", *ENDS_WORD])


def unquoted(raw: str) -> str:
    """A here-document's delimiter without its quotes."""
    if len(raw) > 1 and raw[0] in "'\"" and raw[-1] == raw[0] and raw[0] not in raw[1:-1]:
        return raw[1:-1]
    return raw.replace("\\", "").replace("'", "").replace('"', "")


def _is_name(text: str) -> bool:
    return text[:1] not in ("", *"0123456789") and all(letter in NAME_LETTERS for letter in text)


def _assigns(text: str) -> bool:
    """Whether `text` is ``name=`` or ``name+=``."""
    return text[-1:] == "=" and _is_name(text[: -2 if text[-2:-1] == "+" else -1])


def ends_in(text: str, known: dict) -> Quoted:
    """The ends of what starts in `text`, a word."""
    return _Reader(text, 0, 0, None, known)


def words_in(text: str, known: dict) -> list[str]:
    """The raw words of a condition or an array; its operators are words too."""
    reader, found = _Reader(text, 0, 0, None, known), []
    while reader.at < len(text):
        at = reader.at
        if text[at] in " \t\n":
            reader.at += 1
        elif text[at] == "#" and (not at or text[at - 1] in " \t\n"):
            newline = text.find("\n", at)
            reader.at = len(text) if newline < 0 else newline
        elif text[at] in ";&|<>()" and not text.startswith(("<(", ">("), at):
            reader.at += 2 if text.startswith(("&&", "||"), at) else 1
            found.append(text[at : reader.at])
        else:
            reader.spend(6)
            reader.at = reader.word_end(at)
            found.append(text[at : reader.at])
    return found

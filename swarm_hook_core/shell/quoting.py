"""Where quotes, expansions and substitutions of shell text end, found in one pass over it.

No regular expressions: importing ``re`` costs more than most commands take to be read.
"""

NAME_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
ENDS_WORD = frozenset(" \t\n;&|<>()")
DEEPEST = 24  # substitutions within substitutions
LONGEST_ARITHMETIC = 4000  # characters between (( and ))
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "E": "\x1b"}
MOST_STEPS = 40_000  # of reading, a quarter of a microsecond each: one for a character outside quotes


class TooLong(Exception):
    """The text is not read to its end: too deep, or too much of it."""


class Quoted:
    """A position (`at`) in shell text, and the ways to find the end of what starts there.

    Every method takes the place behind an opening mark and gives the place behind the closing one, or the end of
    the text where it is never closed (`broken`).
    """

    def __init__(self, text: str, at: int = 0, depth: int = 0, places: "dict | None" = None):
        if depth > DEEPEST:
            raise TooLong
        self.text = text
        self.at = at
        self.depth = depth
        self.broken = False
        # Shared with the readers of substitutions: character -> (searched from, found at); place of ``$(`` -> its end;
        # "steps" -> taken so far.
        self.places: dict = {"steps": 0} if places is None else places

    def next_of(self, characters: str, at: int) -> int:
        """Where the first of `characters` stands from `at` on, or the end of the text."""
        places, text = self.places, self.text
        first = len(text)
        for character in characters:
            place = places.get(character)
            if place is None or not place[0] <= at <= place[1]:
                found = text.find(character, at)
                place = places[character] = (at, len(text) if found < 0 else found)
            if place[1] < first:
                first = place[1]
        return first

    def spend(self, steps: int) -> None:
        self.places["steps"] += steps
        if self.places["steps"] > MOST_STEPS:
            raise TooLong

    def closed(self, end: int) -> int:
        """`end`, or the end of the text where that is -1."""
        if end < 0:
            self.broken = True
            return len(self.text)
        return end

    def single(self, at: int) -> int:
        return self.closed(self.text.find("'", at) + 1 or -1)

    def ansi(self, at: int) -> int:
        """Of ``$'...'``, where a backslash escapes the quote."""
        while True:
            at = self.next_of("'\\", at)
            if at >= len(self.text):
                return self.closed(-1)
            if self.text[at] == "'":
                return at + 1
            at += 2

    def double(self, at: int) -> int:
        while True:
            at = self.next_of('"\\$`', at)
            if at >= len(self.text):
                return self.closed(-1)
            character = self.text[at]
            if character == '"':
                return at + 1
            at = self.construct(at, quoted=True)

    def tick(self, at: int) -> int:
        while True:
            at = self.next_of("`\\", at)
            if at >= len(self.text):
                return self.closed(-1)
            if self.text[at] == "`":
                return at + 1
            at += 2

    def braced(self, at: int, quoted: bool = False) -> int:
        """Of ``${``; in double quotes, single quotes mean nothing in it."""
        while True:
            at = self.next_of('}\\$`"' if quoted else "}\\$`\"'", at)
            if at >= len(self.text):
                return self.closed(-1)
            if self.text[at] == "}":
                return at + 1
            at = self.construct(at, quoted)

    def arithmetic(self, at: int) -> int:
        """Of ``((``: the place behind ``))``; -1 where this is no arithmetic but a subshell in a subshell."""
        deep, limit = 2, min(len(self.text), at + LONGEST_ARITHMETIC)
        while True:
            at = self.next_of("()\\$`\"'", at)
            if at >= limit:
                return -1
            self.spend(10)
            character = self.text[at]
            if character == "(":
                deep += 1
                at += 1
            elif character == ")":
                deep -= 1
                at += 1
                if deep == 1:
                    return at + 1 if self.text.startswith(")", at) else -1
            else:
                at = self.construct(at)

    def balanced(self, at: int) -> int:
        """Of ``(`` that holds words: an array, an extended pattern."""
        deep = 1
        while True:
            at = self.next_of("()\\$`\"'", at)
            if at >= len(self.text):
                return self.closed(-1)
            self.spend(10)
            character = self.text[at]
            if character in "()":
                deep += 1 if character == "(" else -1
                at += 1
                if not deep:
                    return at
            else:
                at = self.construct(at)

    def construct(self, at: int, quoted: bool = False) -> int:
        r"""The place behind what starts at `at` with one of ``\ ' " $ ` ``; one further where that is nothing."""
        text = self.text
        character = text[at]
        self.spend(12)
        if character == "\\":
            return min(at + 2, len(text))
        if character == "'":
            return self.single(at + 1)
        if character == '"':
            return self.double(at + 1)
        if character == "`":
            return self.tick(at + 1)
        following = text[at + 1 : at + 2]
        if following == "(":
            if at not in self.places:
                self.places[at] = self.parenthesised(at)
            return self.places[at]
        if following == "{":
            self.deepen()
            end = self.braced(at + 2, quoted)
            self.depth -= 1
            return end
        if following == "'" and not quoted:
            return self.ansi(at + 2)
        return at + 1

    def parenthesised(self, at: int) -> int:
        """Of ``$((`` or ``$(``, whichever it turns out to be."""
        if self.text.startswith("(", at + 2):
            self.deepen()
            end = self.arithmetic(at + 3)
            self.depth -= 1
            if end >= 0:
                return end
        return self.substitution(at + 2)

    def deepen(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise TooLong

    def substitution(self, at: int) -> int:
        """Of ``$(`` and ``<(``: only who reads commands can tell."""
        raise NotImplementedError


def ansi(text: str) -> str:
    """What ``$'text'`` stands for."""
    if "\\" not in text:
        return text
    out, at, end, bytewise = [], 0, len(text), False
    while at < end:
        if text[at] != "\\" or at + 1 >= end:
            out.append(text[at])
            at += 1
            continue
        letter = text[at + 1]
        at += 2
        if letter in _ESCAPES:
            out.append(_ESCAPES[letter])
            continue
        digits, base, most = ("x", 16, 2) if letter == "x" else ("u", 16, 4) if letter == "u" else ("U", 16, 8)
        if letter in "01234567":
            at, base, most = at - 1, 8, 3
        elif letter not in "xuU":
            out.append(letter if letter in "\\'\"?" else "\\" + letter)
            continue
        close = at
        while close < end and close - at < most and text[close] in "0123456789abcdefABCDEF"[: 8 if base == 8 else 22]:
            close += 1
        number = int(text[at:close], base) if close > at else 0
        at = close
        if base == 8 or letter == "x":
            number &= 0xFF
            bytewise = bytewise or number > 0x7F
            out.append(chr(number if number < 0x80 else 0xDC00 + number) if number else "")
        elif 0 < number < 0x110000:
            out.append(chr(number))
    return _decoded("".join(out)) if bytewise else "".join(out)


def _decoded(text: str) -> str:
    """`text` with the bytes that stand in it as surrogates read as UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    except UnicodeError:
        return text

"""Where brackets close, arguments part and expressions end in a list of Tokens."""

import time

from swarm_hook_core.shell.programs.scripts.tokens import NAME, SIGN, TooLong

_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")
_SUFFIX_FOR_STATEMENT = frozenset("if unless or and do while until for foreach rescue then".split())


class Structure:
    """Code in `language`, that is gone through up to time `until` of this thread."""

    def __init__(self, language, until):
        self.language = language
        self.until = until

    def tick(self) -> None:
        if time.thread_time() > self.until:
            raise TooLong

    def matching(self, found: list, at: int) -> int:
        """Where the bracket at `at` closes."""
        self.tick()
        depth = 0
        for place in range(at, len(found)):
            if found[place].kind == SIGN:
                value = found[place].value
                depth += (value in _OPENING) - (value in _CLOSING)
                if not depth:
                    return place
        return len(found)

    def cuts(self, found, start, stop, signs) -> list:
        """Where one of `signs` stands outside of brackets."""
        self.tick()
        places, depth = [], 0
        for place in range(start, min(stop, len(found))):
            if found[place].kind == SIGN:
                value = found[place].value
                if not depth and value in signs and place > start:
                    places.append(place)
                depth += (value in _OPENING) - (value in _CLOSING)
        return places

    def split(self, found, start, stop) -> list:
        cuts = self.cuts(found, start, stop, (",",))
        pairs = list(zip([start, *(cut + 1 for cut in cuts)], [*cuts, stop]))
        return [(begin, end) for begin, end in pairs if any(token.value != "\n" for token in found[begin:end])]

    def arguments(self, found, at: int) -> list:
        """(start, stop) of each argument of the call whose name is before `at`."""
        if sign_at(found, at) == "(":
            return self.split(found, at + 1, self.matching(found, at))
        return self.split(found, at, self.end(found, at, True))

    def end(self, found, at: int, bare=False) -> int:
        """Where the expression that starts at `at` ends."""
        self.tick()
        depth = 0
        for place in range(at, len(found)):
            token = found[place]
            if token.kind == SIGN:
                if token.value in _CLOSING and not depth:
                    return place
                if not depth and (token.value == ";" or (token.value == "," and not bare)):
                    return place
                if not depth and bare and token.value in ("{", "||", "&&"):
                    return place
                if not depth and token.value == "\n" and self.language.newline_ends and place > at:
                    previous, following = found[place - 1], found[place + 1 : place + 2]
                    goes_on = previous.kind == SIGN and previous.value not in (")", "]", "}", ";")
                    if not goes_on and not (following and following[0].value in (*self.language.joins, "?", ":", "||")):
                        return place
                depth += (token.value in _OPENING) - (token.value in _CLOSING)
            elif token.kind == NAME and not depth and place > at and token.value in _SUFFIX_FOR_STATEMENT:
                return place
        return len(found)

    def start_of_value(self, found: list, at: int) -> int:
        """Where the value that ends before `at` begins."""
        place = at - 1
        if place >= 0 and sign_at(found, place) in _CLOSING:
            depth = 0
            while place >= 0:
                sign = sign_at(found, place)
                depth += (sign in _CLOSING) - (sign in _OPENING)
                if not depth:
                    break
                place -= 1
            if place > 0 and found[place - 1].kind == NAME and sign_at(found, place) == "(":
                place -= 1
        return max(place, 0)


def sign_at(found: list, at: int):
    """The sign at `at`, or None where there is none."""
    return found[at].value if 0 <= at < len(found) and found[at].kind == SIGN else None

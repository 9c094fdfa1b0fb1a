"""What names are set to: assignments, loops over lists, parameters from the calls in the same code."""

from swarm_hook_core.shell.model import UNKNOWN
from swarm_hook_core.shell.programs.scripts.structure import sign_at
from swarm_hook_core.shell.programs.scripts.tokens import NAME
from swarm_hook_core.shell.programs.scripts.values import Values, element_of, texts_of

_WORDS_BEFORE_NAME = frozenset("const let var my our local final static".split())


class Names(Values):
    """`depth`: braces that are open where a name is met."""

    depth = 0

    def binding(self, found: list, at: int) -> None:
        """What a name is set to here: an assignment, or the variable of a loop."""
        name = found[at].value
        after = sign_at(found, at + 1)
        if after == "=" and sign_at(found, at + 2) not in ("=", "~"):
            self.assign(found, at)
        elif after in (":",) and self.language.name == "javascript":
            return
        if name in ("for", "foreach"):
            self.loop(found, at)
        elif name.endswith((".forEach", ".map", ".each", ".each_with_index")) or name in (
            ".forEach",
            ".map",
            ".each",
            ".each_with_index",
        ):
            self.each(found, at)

    def assign(self, found: list, at: int) -> None:
        name = found[at].value
        value = self.texts(found, at + 2, self.end(found, at + 2))
        old = self.known.get(name)
        if old is not None and self.depth and UNKNOWN not in value and not value.elements:
            value = texts_of([*old, *value])
        self.known[name] = value

    def loop(self, found: list, at: int) -> None:
        """``for (const x of list)``, ``for my $x (list)``, ``foreach (list as $k => $x)``, ``for x in list``."""
        begin = at + 1
        head_end = self.matching(found, begin) if sign_at(found, begin) == "(" else None
        inside = found[begin + 1 : head_end] if head_end is not None else []
        words = [token.value for token in inside]
        if self.language.name == "php" and "as" in words:
            place = words.index("as")
            names = [token.value for token in inside[place + 1 :] if token.kind == NAME]
            value = self.texts(inside, 0, place)
            if "=>" in words[place:] and len(names) > 1:
                self.known[names[0]] = element_of(self.keys(inside, 0, place))
                names = names[1:]
            if names:
                self.known[names[0]] = element_of(value)
            return
        if self.language.name == "javascript" and head_end is not None:
            place = next((p for p, word in enumerate(words) if word in ("of", "in") and inside[p].kind == NAME), None)
            if place:
                names = [token.value for token in inside[:place] if token.kind == NAME]
                names = [name for name in names if name not in _WORDS_BEFORE_NAME]
                self.bind_each(names, inside, place + 1, len(inside))
            return
        if self.language.name == "perl":
            while begin < len(found) and found[begin].kind == NAME and found[begin].value in _WORDS_BEFORE_NAME:
                begin += 1
            name = "$_"
            if begin < len(found) and found[begin].kind == NAME and found[begin].value.startswith("$"):
                name = found[begin].value
                begin += 1
            if sign_at(found, begin) == "(":
                self.known[name] = element_of(self.listed(found, begin + 1, self.matching(found, begin)))
            return
        names, place = [], begin
        while place < len(found) and (found[place].kind == NAME or sign_at(found, place) == ","):
            if found[place].value == "in":
                break
            if found[place].kind == NAME:
                names.append(found[place].value)
            place += 1
        if names and place < len(found) and found[place].value == "in":
            stop = next((p for p in range(place, len(found)) if found[p].value in ("do", "\n", "{")), len(found))
            start = place + 1
            if found[start : start + 1] and found[start].value in ("ipairs", "pairs"):
                start, stop = start + 2, self.matching(found, start + 1)
            self.known[names[-1]] = element_of(self.texts(found, start, stop))

    def bind_each(self, names, found, start, stop) -> None:
        value = self.texts(found, start, stop)
        first = found[start].value if start < len(found) else ""
        if first in ("Object.entries", "Object.keys") and sign_at(found, start + 1) == "(":
            value = self.keys(found, start + 2, stop - 1)
        for name in names[:1]:
            self.known[name] = element_of(value)
        for name in names[1:]:
            self.known[name] = texts_of([UNKNOWN])

    def each(self, found: list, at: int) -> None:
        """``list.forEach(x => ...)``, ``list.each { |x| ... }``."""
        name = found[at].value
        owner = name.rpartition(".")[0]
        if owner:
            value = self.known.get(owner, texts_of([UNKNOWN]))
        else:
            start = self.start_of_value(found, at)
            value = self.texts(found, start, at)
            if found[start].value in ("Object.keys", "Object.entries"):
                value = self.keys(found, start + 2, at - 1)
        place = at + 1
        if self.language.name == "ruby":
            while place < len(found) and found[place].value in ("{", "do"):
                place += 1
            names = []
            if sign_at(found, place) == "|":
                stop = next((p for p in range(place + 1, len(found)) if sign_at(found, p) == "|"), place)
                names = [token.value for token in found[place + 1 : stop] if token.kind == NAME]
        else:
            place += 1
            names = []
            while place < len(found) and found[place].value not in ("=>", "{") and len(names) < 3:
                if found[place].kind == NAME and found[place].value not in ("async", "function"):
                    names.append(found[place].value)
                place += 1
        if names:
            self.known[names[0]] = element_of(value)

    def functions(self, found: list) -> dict:
        """name -> parameters, of functions that the code defines."""
        made: dict = {}
        for at, token in enumerate(found):
            if token.value in ("function", "def") and token.kind == NAME and at + 1 < len(found):
                name, place = found[at + 1], at + 2
                if name.kind == NAME and sign_at(found, place) == "(":
                    made[name.value] = self.parameters(found, place)
                    if self.language.name == "lua":
                        self.calls.pop(name.value, None)
            elif sign_at(found, at) == "=" and at and found[at - 1].kind == NAME:
                place = at + 1
                while place < len(found) and found[place].value in ("async", "function"):
                    place += 1
                if sign_at(found, place) == "(":
                    end = self.matching(found, place)
                    if found[place - 1].value == "function" or sign_at(found, end + 1) == "=>":
                        made[found[at - 1].value] = self.parameters(found, place)
                elif place + 1 < len(found) and found[place].kind == NAME and sign_at(found, place + 1) == "=>":
                    made[found[at - 1].value] = [found[place].value]
        return made

    def parameters(self, found: list, at: int) -> list:
        names: list = []
        for start, stop in self.arguments(found, at):
            named = [token.value for token in found[start:stop] if token.kind == NAME]
            names.append(named[0] if named else "")
        return names

    def give_parameters(self, found: list, definitions: dict) -> None:
        """Parameters stand for what the calls in the code give them."""
        for name, parameters in definitions.items():
            given: dict = {}
            for at, token in enumerate(found):
                if token.kind != NAME or token.value != name or (at and found[at - 1].value in ("function", "def")):
                    continue
                if sign_at(found, at + 1) != "(":
                    continue
                for parameter, (start, stop) in zip(parameters, self.arguments(found, at + 1)):
                    given.setdefault(parameter, []).extend(self.texts(found, start, stop))
            for parameter in parameters:
                self.known[parameter] = texts_of(given.get(parameter, [UNKNOWN]))

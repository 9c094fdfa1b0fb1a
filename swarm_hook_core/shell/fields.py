"""The fields that a word becomes, as they are put together: what is split, and which letters make a pattern."""

from swarm_hook_core.shell.model import UNKNOWN

LONGEST_VALUE = 128 * 1024  # characters; a longer value is unknown
_BLANK = " \t\n"


class Fields:
    """Fields being built: each a list of (text, whether pattern letters in it count).

    `separators`: where what is not quoted is split; None: nowhere.
    """

    __slots__ = ("separators", "done", "open")

    def __init__(self, separators=None):
        self.separators = separators
        self.done: list = []
        self.open = None

    def put(self, text: str, magic: bool = False) -> None:
        if self.open is None:
            self.open = []
        if text:
            self.open.append((text, magic))

    def next(self) -> None:
        if self.open is not None:
            self.done.append(self.open)
            self.open = None

    def put_split(self, text: str) -> None:
        """An unquoted expansion."""
        piece = ""
        if self.separators is None or not any(one in text for one in self.separators):
            piece, text = text, ""
        for letter in text:
            if letter not in self.separators:
                piece += letter
                continue
            if piece:
                self.put(piece, True)
                piece = ""
            elif letter not in _BLANK and self.open is None:
                self.put("")
            self.next()
        if piece:
            self.put(piece, True)

    def put_list(self, texts: list, quoted: bool) -> None:
        """What ``$@`` or ``${a[@]}`` stands for."""
        for place, text in enumerate(texts):
            if place:
                self.put(" ") if self.separators is None else self.next()
            self.put(text) if quoted else self.put_split(text)

    def finish(self) -> list:
        self.next()
        return self.done

    def text(self) -> str:
        """All as one text; UNKNOWN where it is too long."""
        text = "".join(text for text, _magic in self.finish()[0]) if self.open is not None else ""
        return text if len(text) <= LONGEST_VALUE else UNKNOWN

"""What commands print, put together, and read again."""

from swarm_hook_core.shell.model import UNKNOWN, Stream

MOST_LINES = 24  # of names that were found, which are read one by one
MOST_TEXT = 256 * 1024  # characters of a stream


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
        founds += one.found
    return Stream(None, founds)


def text_of(stream):
    """The text of `stream`, with the names that stand in it where it is what a search has found; else None."""
    if stream is None or stream.text is not None or stream.found is None:
        return None if stream is None else stream.text
    names: list[str] = []
    for one in stream.found:
        more = one.names() if one.names is not None else None
        if more is None:
            return None
        names += more
    stream.text = "".join(name + "\n" for name in names)
    return stream.text


class Input:
    """What a command reads, line by line where the shell itself reads it (`read`)."""

    __slots__ = ("stream", "_rest", "_was_read")

    def __init__(self, stream):
        self.stream = stream
        self._rest = stream.text if stream is not None and stream.found is None else None
        self._was_read = False

    def rest(self):
        """The Stream that is left, or None where nothing is known of it."""
        if self.stream is None or self._rest is None or self._rest is self.stream.text:
            return self.stream
        return Stream(self._rest)

    def line(self, walk):
        """(next line, or a mark for all that were found; whether there is one: None where that cannot be told)."""
        if self.stream is None or (self._rest is None and self.stream.found is None):
            return UNKNOWN, None
        if self._rest is None and not self._was_read:
            text = text_of(self.stream)
            if text is not None and text.count("\n") <= MOST_LINES:
                self._rest = text
        if self._rest is None:
            done, self._was_read = self._was_read, True
            if done:
                return "", False
            names = (self.stream.text or "").splitlines()
            return walk.each_of(names) if names else walk.mark(self.stream.found), True
        if not self._rest:
            return "", False
        line, _, self._rest = self._rest.partition("\n")
        return line, True

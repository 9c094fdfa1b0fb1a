"""The keys, their actions while the panes are visible, and their names."""

from __future__ import annotations

# While words are typed, or a page covers the panes, these keys belong to that.
KEYS = {
    "tab": "next_pane(1)", "shift+tab": "next_pane(-1)", **{str(at + 1): f"pane({at})" for at in range(6)},
    "up,k": "move(-1)", "down,j": "move(1)", "pageup": "leaf(-1)", "pagedown": "leaf(1)", "home": "move(-1000000)",
    "end": "move(1000000)", "enter": "open", "w": "why", "f": "ask('file')", "l": "log", "b": "blame", "t": "today",
    "u": "unlock", "x": "stop", "slash": "ask('words')", "escape": "all_rows", "a": "everywhere", "z": "zoom",
    "question_mark": "keys", "q": "leave",
}  # fmt: skip
TYPED = {  # The label below the input line, by kind of input.
    "words": " only rows with these words; Enter keeps them, Esc shows all",
    "file": " who holds this file? its path, then Enter; Esc leaves",
}
LINE = " ? keys  / filter  Enter open  w why  f file  t today  u unlock  x stop  q quit"
PAGE = """\
Who holds a file?          w on its row, or f and its path
Why was I refused?         3, its row, Enter
Which message is unread?   6
Who waits, and for what?   2: they stand below the lock, in order
What has been done here?   t; to one file: l on its row
Whose lines are not committed?  5; b on a row of it, or a session's
What is a worker doing?    4, its row, Enter: it is followed
How do I stop it?          x ends the row's worker or task,
                           u gives back your own lock; asked first

Tab, 1 to 6        next pane, or that one     z   this pane alone
Up, Down, j, k     the row                    a   all checkouts
PgUp, PgDn         a screen of rows           Esc       all rows
Enter              more of the row            Ctrl-Z    to the shell
/                  only rows with words       q, Ctrl-C quit"""

"""The program in front of the check before a write, which a platform's wheel carries (``native/``).

It lets a call pass in silence, or executes the check. It leaves the traces that the check leaves, and reads the same
files: `CONTRACT` numbers them, here and in ``native/swarm_check.h``, and grows with each change of a trace, of a lock,
or of a file in the state folder that a check reads or writes. A hook's command has the number of its own plugin: a
program of another one executes the check at once.
"""

CONTRACT = 3
CLIENTS = ("claude-code", "codex")  # whose payloads it reads

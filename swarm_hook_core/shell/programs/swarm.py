"""Swarm's own command: its request is kept for ``protected``, and the command that it runs is read."""

import os

from swarm_hook_core.shell.call import Call
from swarm_hook_core.shell.model import is_known

# A command that sets one of these has its state elsewhere.
_PLACES = ("HOME", "SWARM_CONFIG_DIR", "SWARM_STATE_DIR", "SWARM_DB_PATH", "XDG_CONFIG_HOME", "XDG_STATE_HOME")


def swarm(call: "Call") -> None:
    is_here = all((call.walk.scope.variable(name) or "") == os.environ.get(name, "") for name in _PLACES)
    if is_here and all(map(is_known, call.words[:3])):
        call.walk.effects.add_deed([call.name, *call.words], call.folder, call.by)
    if call.words[:1] == ["hold"] and "--" in call.words:
        call.run(call.words[call.words.index("--") + 1 :], call.stdin)

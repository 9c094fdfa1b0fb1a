"""How far a session is kept from what other sessions have changed and not committed: a word that a person sets.

Each level holds what the one before it does. ``settings.auto`` says where it may be set; here is what every check
asks: where nothing is set, it costs one look at the disk.
"""

import os

from swarm_hook_core.state import config_path

OFF, NOTICE, KEEP, TURN = LEVELS = ("off", "notice", "keep", "turn")
DEFAULT = KEEP


def level(prefix: str, folder: str) -> str:
    """The level in force in `folder`, for the runtime whose variables have `prefix` in their names. Never raises."""
    for name in (f"SWARM_{prefix}_AUTO", "SWARM_AUTO"):
        word = os.environ.get(name, "").strip().lower()
        if word in LEVELS:
            return word
        if word:
            break  # no level: to be told
    else:
        try:
            os.stat(config_path())
        except (OSError, ValueError):
            return DEFAULT
    from swarm_hook_core.settings import auto

    return auto(prefix, folder).value

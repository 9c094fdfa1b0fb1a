"""The words after the coordinator ran a hook itself and was killed over it, by its own time limit for one.

No second attempt is made: the payload is gone with it, and so is the time. A session that is not registered by now will
be in passing, by its first check.
"""

from swarm_hook_core import faults
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.greetings import unregistered
from swarm_hook_core.hooks import answer

OUT_OF_TIME = 14  # SIGALRM; the process sets it as it begins


def tell(config: "RuntimeConfig", event: str, status: int) -> int:
    """Record a coordinator that ended with exit `status` as a shell has it; a session's start says so as well."""
    try:
        signal = status - 128
        if signal == OUT_OF_TIME:
            why = "no answer within its time"
        else:
            why = f"swarm-mcp was killed by signal {signal}"
        faults.record(config.runtime_name, event, why)
        if event == "session_start":
            words = unregistered(why)
            answer(config.dialect.words("SessionStart", words, words))
    except Exception as error:
        faults.record(config.runtime_name, event, error)
    return 0

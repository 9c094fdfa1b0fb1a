"""Reading the store's file as hooks do, from processes that have more than one thread."""

import threading

from support.fixtures import Ground

from swarm_hook_core.lookup.sqlite import StoreReader


def test_what_a_thread_has_left_is_closed_in_another(ground: Ground):
    """The garbage collector runs in the thread that happens to ask for memory."""
    ground.store().close()
    made: list[StoreReader] = []
    thread = threading.Thread(target=lambda: made.append(StoreReader(ground.database)))
    thread.start()
    thread.join()
    made.pop().close()

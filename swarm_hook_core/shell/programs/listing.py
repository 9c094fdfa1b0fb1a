"""The names that a search prints, where they are few enough to be looked at one by one."""

import os
import time

MOST_LOOKED_AT = 1500  # files and folders of one search
MOST_NAMES = 200  # that it finds
SECONDS = 0.006  # of processor time for one search; a walk has `Walk.seconds_to_list` for all of them


def names_below(walk, root: str, spelled: str, look):
    """What is found at and under absolute `root`, in no order, spelled as it is below `spelled`.

    ``look(names)``: whether what the folders and the name `names` lead to from `root` is found (None: it cannot be
    told), and whether what is below it is looked at. None where they are too many, or cannot be told, or where an
    earlier part of the script may have changed what is there.
    """
    if not walk.files.is_untouched(root):
        return None
    start = time.thread_time()
    end = start + min(SECONDS, walk.seconds_to_list)
    try:
        return _names(root, spelled, look, end)
    finally:
        spent = time.thread_time() - start
        walk.seconds_to_list -= spent
        walk.end += spent


def _names(root: str, spelled: str, look, end: float):
    found: list[str] = []
    waiting: list = [(root, [])] if os.path.lexists(root) else []
    looked = 0
    while waiting:
        path, names = waiting.pop()
        looked += 1
        if looked > MOST_LOOKED_AT or len(found) > MOST_NAMES or time.thread_time() > end:
            return None
        answer, goes_on = look(names)
        if answer is None or goes_on is None:
            return None
        if answer:
            found.append(os.path.join(spelled, *names))
        if goes_on:
            try:
                with os.scandir(path) as entries:
                    below = [(entry.path, [*names, entry.name]) for entry in entries]
            except OSError:
                continue
            if len(below) > MOST_LOOKED_AT:
                return None
            waiting += below
    return found

"""Handing work to whoever can do it: a live worker, or one that is started for it."""

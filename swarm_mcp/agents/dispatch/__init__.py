"""Handing work to a live worker, or to one that is started for it."""

"""A language server for the person at the keyboard: the locks on open files, and the authors of their changes.

It reads the store and the traces, and writes neither: only a save is noted, beside the versions of sessions.

    facts      the locks of an open file, its uncommitted changes by sessions, and the words for both
    server     the protocol, and the open documents, read anew after commits to the store and changes on the disk
"""

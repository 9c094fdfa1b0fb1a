"""A language server for the person at the keyboard: the locks on open files, and the authors of their changes.

It reads the store and the traces, and writes neither: only a save is noted, beside the versions of sessions.

    document   an open file, and its content when the editor last agreed with the disk
    facts      its locks, and its uncommitted changes by sessions
    words      the words for both
    lines      places of these changes in the editor's text
    saves      notes of saves
    desk       the open documents, read anew after commits to the store and changes on the disk
    server     the protocol: requests and notifications of the editor
"""

"""What is going on, for those who look on: who has what, who waits, what has happened, in rows that are ready to show.

``swarm-mcp top`` and ``swarm-mcp page`` are two ways to look at it. Everything here only reads, asks the store through
its interface, and is bounded: a listing has a `limit`, and says how many more there are. A `viewer` is the identity of
whoever looks on, empty for none: sessions of another one have no names and no notes. A `scope` is a checkout's folder,
empty for all of them. Texts of sessions are as they were written: whoever shows them escapes them.

    people       what sessions are called
    checkouts    which folders there is something going on in
    now          sessions, and files that are held, waited for and edited
    machines     those that a clone's team has, and how fresh what is known of them is
    edits        files that are changed and not committed, and by whom
    lines        who waits for what, and circles of them
    timeline     what has happened
    checkout_history  the same with tasks and with what is changed and not committed, and how much of each
    work         tasks, messages and workers
    session      one session whole
    explained    the words for what keeps somebody from a file
    transcript   the end of what a worker has done
"""

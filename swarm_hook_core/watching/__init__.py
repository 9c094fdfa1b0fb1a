"""What happened to locked files while a call ran that nobody could read beforehand.

    PreToolUse ── watch.begin ──▶ records, kept ── after the call ── watch.finish, settle ──▶ report ──▶ who has to know

`watch` compares, `snapshot` is what a file looked like, `records` are the calls under way, `kept` the earlier
contents, `watched_files` which are compared for a lock, `report` who is told of a breach, and in
which words.
"""

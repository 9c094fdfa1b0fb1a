"""Locked files compared before and after a call that cannot be parsed.

    PreToolUse ── watch.begin ──▶ records ── after the call ── watch.finish, settle ──▶ report ──▶ the sessions

``core`` calls `watch` around each such call, and `edits` around edits. `snapshot` is the state of a file, `records` are
the calls under way, `watched_files` the files compared for a lock, `report` the notices to the writing session and to
the holders. Earlier contents lie in the store of versions (``traces.versions.locked``).
"""

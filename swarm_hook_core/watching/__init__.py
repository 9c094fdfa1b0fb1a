"""Locked files compared before and after a call that cannot be parsed.

    PreToolUse ── watch.begin ──▶ records ── after the call ── watch.finish, settle ──▶ report ──▶ the sessions

``core`` calls `watch` around each such call, and `edits` around edits. `records` has the state of a file, and the calls
under way; `report` the notices to the writing session and to the holders. Earlier contents lie in the store of versions
(``traces.versions``).
"""

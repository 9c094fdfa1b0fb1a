"""Queries about the present state of a scope, in rows that are ready to show, beside those of ``answers``.

``swarm-mcp top`` and ``swarm-mcp page`` are two views of these rows.

  now    sessions, files that are locked, waited for and edited, lines of waiters; uncommitted files, and the day's
         writes, by session
  cards  one card per session, with the reasons why it needs a person, and the end of a worker's record
"""

"""Queries about the present state of a scope, in rows that are ready to show, beside those of ``answers``.

``swarm-mcp top`` and ``swarm-mcp page`` are two views of these rows.

  checkouts    the folders with sessions in them
  now          sessions, and files that are locked, waited for and edited
  lines        waiters, their obstacles, and circles of waiters
  session      one session whole
  owned        uncommitted lines by author
  transcript   the end of a worker's record
"""

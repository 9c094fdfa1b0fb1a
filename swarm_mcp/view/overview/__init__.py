"""Queries about the present state of a scope, in rows that are ready to show, beside those of ``answers``.

``swarm-mcp top`` and ``swarm-mcp page`` are two views of these rows.

  checkouts    the folders with sessions in them
  now          sessions, and files that are locked, waited for and edited
  lines        waiters, their obstacles, and circles of waiters
  session      one session whole
  work         uncommitted files, and the day's writes, by session
  cards        one card per session, with the reasons why it needs a person
  edit_events  writes as events of a timeline
  owned        uncommitted lines of a file by author
  transcript   the end of a worker's record
"""

"""Queries about the present state and the history of a scope, in rows that are ready to show.

``swarm-mcp top`` and ``swarm-mcp page`` are two views of these rows. Every query only reads, asks the store through its
interface, and is bounded: a listing has a `limit` and counts the rows left out. A `viewer` is the identity of the
reader, empty for none: sessions of another identity have no names and no notes. A `scope` is a checkout's folder, empty
for all. Texts of sessions are unescaped; the views escape them.

  people       the names of sessions
  checkouts    the folders with sessions in them
  now          sessions, and files that are locked, waited for and edited
  machines     the machines of a clone's team, and the age of the knowledge about each
  edits        changed, uncommitted files and their authors
  lines        waiters, their obstacles, and circles of waiters
  timeline     past events
  checkout_history  past events with tasks and uncommitted changes, counted
  work         tasks, messages and workers
  session      one session whole
  explained    the words for an obstacle to a write
  transcript   the end of a worker's record
"""

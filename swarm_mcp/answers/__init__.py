"""Answers to people and models: rows that are ready to show, their words, their size, their pages.

Every query only reads, and is bounded: a listing has a `limit` and counts the rows left out. A `viewer` is the identity
of the reader, empty for none: sessions of another identity have no names and no notes. A `scope` is a checkout's
folder, empty for all. Texts of sessions are unescaped; commands and views escape them.

  people       the names of sessions
  views        rows as JSON; strangers' parts left out
  size         room in an answer, and paging of lists that need more
  text_width   cells of a text at a terminal
  lock_events  events about locks, and timeline: all past events
  edits        changed, uncommitted files and their authors
  checkout_history  past events with tasks and uncommitted changes, counted
  machines     the machines that share a checkout, and the age of the knowledge about each
  work         tasks, messages and workers
  incidents    refusals and notices as one model, and incident_words: their words on every screen
  explained    the words for the end of a lock
"""

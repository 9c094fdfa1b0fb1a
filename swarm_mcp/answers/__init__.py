"""Answers to people and models: rows that are ready to show, their words, their size, their pages.

Every query only reads, and is bounded: a listing has a `limit` and counts the rows left out. A `viewer` is the identity
of the reader, empty for none: sessions of another identity have no names and no notes. A `scope` is a checkout's
folder, empty for all. Texts of sessions are unescaped; commands and views escape them.

  people     the names of sessions and of machines; rows of sessions as JSON, strangers' parts left out
  size       room in an answer, paging of lists that need more, cells of a text at a terminal
  timeline   all past events, those about locks among them; refusals and notices, and their words on every screen
  work       tasks, messages and workers; changed, uncommitted files and their authors
"""

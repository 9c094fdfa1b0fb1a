"""The three ways in which a write changes a file, as seen from the uncommitted work in it."""

EDIT = "edit"  # keeps the rest of the file; the default of a write that is not known to lose it
REPLACE = "replace"  # other content comes in its place, whole
REMOVE = "remove"  # the file is gone from its place

"""What a write does to what was in the file before: the three ways that a peer's uncommitted work meets one."""

EDIT = "edit"  # starts from what is there, so that the rest of it stays: the default of what is not known to lose it
REPLACE = "replace"  # other content comes in its place, whole
REMOVE = "remove"  # the file is gone from its place

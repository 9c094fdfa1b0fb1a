"""The coordinator's part of a session's hooks: start, turns and end in one short process."""

"""Locks as commands and tools ask for them: taking, waiting, explaining, restoring."""

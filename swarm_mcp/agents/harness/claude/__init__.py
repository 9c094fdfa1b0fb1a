"""Claude Code as a harness."""

"""OpenCode as a harness."""

"""Codex as a harness."""

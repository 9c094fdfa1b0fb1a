"""Runs real processes in every order that a seed can choose, and judges their words and files (docs/dev/explored.md)."""

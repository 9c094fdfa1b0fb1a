"""Gemini CLI as a harness."""

"""Answers to people and models: their names, their size, their pages."""

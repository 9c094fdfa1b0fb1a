"""Processes that end with the process that started them."""

"""Workspaces that sessions can be seen and woken in, and the panes of sessions there."""

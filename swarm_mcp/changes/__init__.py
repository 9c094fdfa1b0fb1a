"""Uncommitted changes by author: showing, committing and undoing them.

The authors come from the hook core's versions (``swarm_hook_core.traces.versions``).
"""

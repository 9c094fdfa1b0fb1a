"""Replays the same work without a tool, in worktrees, through swarm, and through the tools that people use in its place."""

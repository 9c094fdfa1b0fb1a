"""Replays the same work without a tool, in worktrees, through swarm, and through what people use in its place."""

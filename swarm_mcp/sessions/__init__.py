"""The session that acts, and what it is told of itself and of the others."""

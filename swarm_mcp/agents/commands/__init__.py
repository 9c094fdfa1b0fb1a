"""The verbs about workers, one module for each family, and what they show at a terminal."""

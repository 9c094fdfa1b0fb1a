"""The bash harness (wedow/harness) as a harness."""

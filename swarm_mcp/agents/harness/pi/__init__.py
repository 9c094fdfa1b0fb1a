"""pi as a harness."""

"""Two machines with real clients: tests with homes that they make themselves."""

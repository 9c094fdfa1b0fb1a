"""Shell commands with their real effects, recorded by running them; see `corpora.__main__`."""

"""Shell commands with what they really do, recorded by running them; see `corpora.__main__`."""

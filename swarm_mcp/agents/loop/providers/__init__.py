"""Models: over HTTP, or through an executable.

``http``        asking an endpoint, with retries; the differences between protocols: ``anthropic`` and ``openai`` are
                the two
``choice``      the provider of a run, and the cost of its answers: by name, a ``.conf`` variant, or the first that is
                ready; executables
"""

"""Models: over HTTP, or through an executable.

``protocol``    the differences between protocols: requests, answers, streams; ``anthropic`` and ``openai`` are the two
``http``        asking an endpoint, with retries; its errors as our error codes
``prices``      the cost of answers
``choice``      the provider of a run: by name, a ``.conf`` variant, or the first that is ready; executables
"""

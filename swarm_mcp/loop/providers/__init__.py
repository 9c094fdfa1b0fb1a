"""Models: over HTTP, or through an executable.

``protocol``    what differs between protocols: requests, answers, streams; ``anthropic`` and ``openai`` are the two
``http``        asking an endpoint, with retries; its errors as our error codes
``prices``      what answers cost
``choice``      which provider: by name, a ``.conf`` variant, or the first that is ready; those that are executables
"""

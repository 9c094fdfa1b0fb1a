"""Models: over HTTP, or through an executable.

``wire``        what a protocol has to say: requests, answers, streams; ``anthropic`` and ``openai`` are the two
``http``        asking an endpoint, with retries; its errors in our words
``choice``      which provider: by name, a ``.conf`` variant, or the first that is ready
``executable``  providers of plugins
"""

"""Driving agent command lines: one adapter says how each differs, one runner does the rest.

``query``     what a run is asked to do
``adapter``   what an adapter provides; ``adapters/`` has one module each, ``registry`` finds them by name
``events``    what happens in a run, in words that are the same for every harness
``outcome``   how a run ended
``run``       the runner: starts the child, reads it, watches it, ends it
"""

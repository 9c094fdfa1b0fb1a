"""Commands with what they really do, recorded. ``PYTHONPATH=tests python -m corpora`` records it anew."""

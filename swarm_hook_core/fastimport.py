"""The only place that puts anything into ``sys.modules``: to load a C module without what it would import.

A hook is a process of one thread that ends within milliseconds, and so is a command. Where another thread runs, which
could import the same name at the same moment, nothing is put there, and the import takes its time.
"""

import _thread
import sys


class without_functools:
    """While SQLite's C module loads, stand in for ``functools``, which it wants one name of.

    Saves 5 ms of the 6 that ``import _sqlite3`` costs. The stand-in is withdrawn at once, so that
    later imports get the real module.
    """

    def __enter__(self):
        self.installed = None
        if "functools" in sys.modules or _thread._count():
            return
        try:
            from _functools import _lru_cache_wrapper  # type: ignore[import-not-found]
        except ImportError:
            return

        class StandIn:
            @staticmethod
            def lru_cache(size):
                return lambda function: _lru_cache_wrapper(function, size, False, tuple)

        self.installed = sys.modules["functools"] = StandIn  # type: ignore[assignment]

    def __exit__(self, *_exception):
        if self.installed is not None and sys.modules.get("functools") is self.installed:
            del sys.modules["functools"]

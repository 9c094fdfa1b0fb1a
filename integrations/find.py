"""Prints the real path of this interpreter if hooks can run on it: a version manager's stand-in would cost 100 ms.

Any Python may be asked, also Python 2.
"""

import _sqlite3  # noqa: F401
import os
import sys

if sys.version_info >= (3, 9):  # noqa: UP036
    print(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))

"""Finds the files that inline code (``python -c``, ``node -e``) would write, without running it.

    command line ──▶ python ── python_expressions ── python_library ──┬──▶ effects ──▶ the shell reader's call
               └──▶ scanner ── languages ─────────────────────────────┘

Python is followed by constant propagation over its syntax tree. JavaScript, Ruby, Perl, PHP and Lua are scanned for
calls that write, and for literal paths. A writer with an unknown path is a guess, never silence.
"""

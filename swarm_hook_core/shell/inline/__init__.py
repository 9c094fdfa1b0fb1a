"""Code that an interpreter is given in a command: what it would write, found without running it.

    command line ──▶ python ── python_expressions ── python_library ──┬──▶ effects ──▶ the shell reader's call
               └──▶ scanner ── scanned_values, tokens ────────────────┘

Python is followed by constant propagation over its syntax tree. JavaScript, Ruby, Perl, PHP and Lua are scanned for
calls that write and the paths that are written in them. A writer whose path is not known is a guess, never silence.
"""

"""Code that an interpreter is given in a command: what it would write, found without running it.

    command ──▶ python (python_library, python_values) ──┐
           └──▶ scanner (tokens, languages) ─────────────┴──▶ effects ──▶ the shell reader's call

Python is followed by constant propagation over its syntax tree. JavaScript, Ruby, Perl, PHP and Lua are scanned for
calls that write and the paths that are written in them. A writer whose path is not known is a guess, never silence.
"""

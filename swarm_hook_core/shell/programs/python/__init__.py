"""Python: its command line, and its code, which is followed without being run.

    command ── code ── library, methods ── writing, running, given ──▶ the call
                 └── disk (loops over files that are there)

`values` says what an expression can stand for, `operations` what is made of values.
"""

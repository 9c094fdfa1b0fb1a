"""What git commands do: read from their words, and asked of git itself.

git <words> ── command_line, table ──┬── named_files   files that its own words name, patches that it applies
                                     ├── listings      what it prints, for what reads that
                                     └── a GitCall ── touched_files ──▶ Touch, once a peer holds something there
switching, staging, putting_aside, history   which files each subcommand would touch
question, pathspec                           whose files are asked about, and which of them are meant
repository                                   the git processes that answer, read-only and in time
"""

"""What git commands do: read from their words (`words`, `pathspec`, `patches`) and asked of git itself.

git <words> ── words ──▶ reads only, or a GitCall ── git_asked ──▶ Touch
                                                        │
                   switching, staging, aside, history ──┤  what each subcommand would touch
                                             inquiry  ──┤  one question: whose files, which pathspecs
                                          repository  ──┘  the processes that answer it
"""

"""The uncommitted work of others that a call would lose, or take along: one question for sessions' and persons' work.

A session may throw away its own work. All that no session at work has written is a person's: of a person, an ended
session, or an unknown program. At level `keep` such a call is denied, or the person is asked, also if only one session
is at work.

    owners    the files with uncommitted content that go by the call's own words, and the owners of that content
    sweeps    git commands that discard changes, or take them along: the files that go, by git's answers
    stash     entries that a command takes out of the stash
    verdict   the decision, by level; contents that go are kept first
    writes    the decision about files that a call writes beside other sessions
    wording   denials, questions and notices

Only a call that may destroy a file asks git (``check``). A call of a session that is alone, and destroys no
file, loads nothing of this.
"""

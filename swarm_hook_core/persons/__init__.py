"""A person's uncommitted work: changes in the work tree that no session has written.

A person is a peer: at level `keep` a call that would lose such work is denied, or the person is asked, also if only one
session is at work. A session may throw away its own work. Work of an unknown author counts as a person's.

    losses    the files with uncommitted content that a call would lose, by its words and by git
    owners    the author of a file's uncommitted content: a person, this session, or its builds
    wording   denials, questions and notices
    verdict   the decision, by level; contents that go are kept first

Only a call that may destroy a file asks git (``check.company``). All other calls load nothing of this.
"""

"""`make matrix CLIENT=codex RELEASE=latest`: the scenarios that decide, in one release of a client, with its models' families.

families.json   the model names, one for each family
scenarios.py    the scenarios, with their assertions
playing.py      a release in a private home, and the outcome of each scenario
releases.py     a release from the package registry
rows.py         the outcomes that were measured so far, and docs/dev/matrix.md
"""

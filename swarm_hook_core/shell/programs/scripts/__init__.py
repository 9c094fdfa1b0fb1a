"""JavaScript, Ruby, Perl, PHP and Lua: cut into tokens and scanned for what writes.

tokens ── names, values ── code ──▶ the call,  with what `languages` says of each
"""

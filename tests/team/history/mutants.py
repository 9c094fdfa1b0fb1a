"""Faults planted in the server's functions and in a machine: a checker that does not find these finds nothing."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """A change to one function of the schema: `before` must stand in it, once, and becomes `after`."""

    function: str
    before: str
    after: str

    def plant(self, conninfo: str) -> None:
        """Put the changed function in place of the right one, in the database of a test."""
        import psycopg

        with psycopg.connect(conninfo, autocommit=True) as connection:
            row = connection.execute(
                "SELECT pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
                " WHERE n.nspname = 'swarm_team' AND p.proname = %s",
                (self.function,),
            ).fetchone()
            assert row, f"there is no function {self.function}"
            assert row[0].count(self.before) == 1, (
                f"{self.before!r} stands {row[0].count(self.before)} times in {self.function}"
            )
            connection.execute(row[0].replace(self.before, self.after))


# A grant is no compare-and-set any more: grants to others since the machine's last look count for nothing.
GRANTS_UNSEEN = Mutant("acquire", "IF p_seen < r.floor OR EXISTS (", "IF false AND EXISTS (")
# A grant counts at once, even if other machines do not know of it.
COUNTS_AT_ONCE = Mutant(
    "settle", "IF live IS NULL AND r.grace_until <= clock_timestamp() THEN", "IF true THEN behind := NULL;"
)
# A change to a document is no compare-and-set any more: its base version counts for nothing.
CHANGES_UNSEEN = Mutant(
    "put_one", "IF coalesce(was.version, 0) <> (CASE", "IF false AND coalesce(was.version, 0) <> (CASE"
)
# One message in five is told to other machines as something that they do not know, and so pass over.
PASSES_OVER = Mutant(
    "news",
    "'kind', c.kind, ",
    "'kind', CASE WHEN c.body ->> 'kind' = 'message' AND c.version % 5 = 0 THEN 'planted' ELSE c.kind END, ",
)

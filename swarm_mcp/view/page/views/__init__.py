"""One module for each kind of page: its queries, and its template."""

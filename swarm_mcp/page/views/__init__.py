"""One module for each kind of page: what it shows, asked of the store, and which template shows it."""

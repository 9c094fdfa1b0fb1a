"""The tests of locks across machines, which need PostgreSQL; `make team` runs them."""

"""The tests of locks across machines. They need PostgreSQL; `make team` runs them."""

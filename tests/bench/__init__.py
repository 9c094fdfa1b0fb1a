"""The cost of the hooks, measured on the commands of an installed plugin: `make bench`."""

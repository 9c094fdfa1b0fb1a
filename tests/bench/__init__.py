"""What the hooks cost, measured on the commands that an installed plugin runs: `make bench`."""

"""A history checker for locks across machines, faults to make such histories under, and the machines that make them."""

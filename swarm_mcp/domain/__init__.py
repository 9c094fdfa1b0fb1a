"""What the coordinator keeps, as plain values: no SQL, no file, nothing else of ours."""

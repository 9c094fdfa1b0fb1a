"""The coordinator's rows, as plain values: no SQL, no file, nothing else of ours."""

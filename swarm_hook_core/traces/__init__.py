"""What sessions have written in a checkout without a lock, and what that comes to where they meet."""

"""What is locked, and by whom: asked of the store's file (`sqlite`), else of the coordinator's command (`command`)."""

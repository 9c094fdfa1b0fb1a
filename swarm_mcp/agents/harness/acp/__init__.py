"""Any agent that speaks the Agent Client Protocol as a harness."""

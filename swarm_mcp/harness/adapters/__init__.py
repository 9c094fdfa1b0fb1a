"""One module for each harness; ``registry.ADAPTERS`` names them."""

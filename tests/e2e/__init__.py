"""The real clients, scripted models, nothing but loopback. `make e2e` brings the clients."""

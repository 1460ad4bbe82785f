"""The manifests of a warehouse's tables, read with the server's own keys."""

"""The guard against lost updates: compares new snapshots' claims with their manifests."""

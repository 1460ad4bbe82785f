"""The guard against lost updates: it compares what new snapshots say of themselves with their manifests."""

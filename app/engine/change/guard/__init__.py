"""The guard against lost updates: what new snapshots say of themselves, held against their manifests."""

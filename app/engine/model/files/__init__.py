"""What a snapshot consists of: manifests, their entries, delete files."""

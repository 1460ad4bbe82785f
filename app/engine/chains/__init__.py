"""Chains: which metadata file is the newest, as far as the files themselves can say."""

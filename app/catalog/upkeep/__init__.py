"""Upkeep that moves no data: manifests, dangling deletes, partition statistics."""

"""Hadoop's own cluster for tests, in a process of its own; see `scripts/hdfs`."""

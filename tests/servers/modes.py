"""The tower turned on and off: suites about races and crashes run in both modes."""

from __future__ import annotations

ON = {"default_warehouse_properties": '{"icetower.rebase": "appends"}'}
"""Slots and landing together are on by themselves; tables ask for rebases."""
OFF = {"commit_hold_seconds": "0", "commits_together": "1"}
MODES = {"tower on": ON, "tower off": OFF}

"""Receipts and idempotency keys: what became of requests."""

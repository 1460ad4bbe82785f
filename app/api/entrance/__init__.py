"""What every request passes before its route: addresses, callers, bodies, ids."""

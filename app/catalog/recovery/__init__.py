"""Recovery: what is protected from drops, and how what was dropped comes back."""

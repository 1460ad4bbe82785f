"""Threads of one process: who gets one, and how many."""

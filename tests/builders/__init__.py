"""Catalogs and tables with history, made through the real commit path."""

"""The functions that apply one update to a draft, one file per noun."""

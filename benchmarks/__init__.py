"""How fast Icetower is, as ratios against something run beside it. Run by hand: `make bench`."""

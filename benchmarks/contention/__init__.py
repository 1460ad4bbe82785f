"""The contention benchmark: many writers on one table, in each way that Icetower has to deal with them."""

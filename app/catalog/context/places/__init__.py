"""Where tables and views may lie, and what files there are called."""

"""B. Gedik, Partitioning Functions for Stateful Data Parallelism in Stream Processing: scan, redist and readj."""

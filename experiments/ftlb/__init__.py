"""J. Fang et al., Integrating Workload Balancing and Fault Tolerance in Distributed Stream Processing System: FTLB."""

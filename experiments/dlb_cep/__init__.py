"""N. Zacheilas et al., Dynamic Load Balancing Techniques for Distributed Complex Event Processing Systems: DLB."""

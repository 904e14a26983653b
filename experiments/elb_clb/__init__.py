"""Q. Guo and Y. Zhou, Stateful Load Balancing for Parallel Stream Processing: ELB and CLB."""

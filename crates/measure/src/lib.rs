//! How fast it is: placements, kernels, the experiment engine and its statistics.

//! Memory policy, page placement and affinity calls, and what their errors mean.

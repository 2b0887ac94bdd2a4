//! The numbers of memory policies and their flags.
//!
//! # Source
//! `include/uapi/linux/mempolicy.h`; `crates/syscall` compares them with the kernel's headers.

/// The mode `MPOL_DEFAULT`.
pub const DEFAULT: i32 = 0;
/// The mode `MPOL_PREFERRED`.
pub const PREFERRED: i32 = 1;
/// The mode `MPOL_BIND`.
pub const BIND: i32 = 2;
/// The mode `MPOL_INTERLEAVE`.
pub const INTERLEAVE: i32 = 3;
/// The mode `MPOL_LOCAL`, Linux 3.8.
pub const LOCAL: i32 = 4;
/// The mode `MPOL_PREFERRED_MANY`, Linux 5.15.
pub const PREFERRED_MANY: i32 = 5;
/// The mode `MPOL_WEIGHTED_INTERLEAVE`, Linux 6.9.
pub const WEIGHTED_INTERLEAVE: i32 = 6;

/// The mode flag `MPOL_F_NUMA_BALANCING`, Linux 5.12.
pub const F_NUMA_BALANCING: i32 = 1 << 13;
/// The mode flag `MPOL_F_RELATIVE_NODES`.
pub const F_RELATIVE_NODES: i32 = 1 << 14;
/// The mode flag `MPOL_F_STATIC_NODES`.
pub const F_STATIC_NODES: i32 = 1 << 15;
/// All mode flags, which `get_mempolicy(2)` returns with the mode.
pub const MODE_FLAGS: i32 = F_NUMA_BALANCING | F_RELATIVE_NODES | F_STATIC_NODES;

/// The flag `MPOL_F_NODE` of `get_mempolicy(2)`: ask for a node.
pub const F_NODE: i32 = 1;
/// The flag `MPOL_F_ADDR` of `get_mempolicy(2)`: ask about an address.
pub const F_ADDR: i32 = 1 << 1;
/// The flag `MPOL_F_MEMS_ALLOWED` of `get_mempolicy(2)`: ask for the nodes that the cpuset allows.
pub const F_MEMS_ALLOWED: i32 = 1 << 2;

/// The flag `MPOL_MF_STRICT` of `mbind(2)`: fail where pages lie elsewhere.
pub const MF_STRICT: i32 = 1;
/// The flag `MPOL_MF_MOVE` of `mbind(2)`: move pages that only this process maps.
pub const MF_MOVE: i32 = 1 << 1;
/// The flag `MPOL_MF_MOVE_ALL` of `mbind(2)`: move pages that others map, too.
pub const MF_MOVE_ALL: i32 = 1 << 2;

/*
 * The system calls about memory policy: set_mempolicy(2), get_mempolicy(2), mbind(2),
 * migrate_pages(2), move_pages(2). `maxnode` is one more than the bits of the mask.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef NUMAIF_H
#define NUMAIF_H

#ifdef __cplusplus
extern "C" {
#endif

long get_mempolicy(int *mode, unsigned long *nodes, unsigned long maxnode, void *address, unsigned flags);
long set_mempolicy(int mode, const unsigned long *nodes, unsigned long maxnode);
long mbind(void *start, unsigned long bytes, int mode, const unsigned long *nodes, unsigned long maxnode,
	   unsigned flags);
long migrate_pages(int pid, unsigned long maxnode, const unsigned long *from, const unsigned long *to);
long move_pages(int pid, unsigned long count, void **pages, const int *nodes, int *status, int flags);

/* Modes */
#define MPOL_DEFAULT 0
#define MPOL_PREFERRED 1
#define MPOL_BIND 2
#define MPOL_INTERLEAVE 3
#define MPOL_LOCAL 4
#define MPOL_PREFERRED_MANY 5 /* Linux 5.15 */
#define MPOL_WEIGHTED_INTERLEAVE 6 /* Linux 6.9 */
#define MPOL_MAX 7

/* Flags of a mode */
#define MPOL_F_NUMA_BALANCING (1 << 13) /* Linux 5.12 */
#define MPOL_F_RELATIVE_NODES (1 << 14)
#define MPOL_F_STATIC_NODES (1 << 15)

/* Flags of get_mempolicy */
#define MPOL_F_NODE (1 << 0) /* the next node, not the mode */
#define MPOL_F_ADDR (1 << 1) /* the policy of an address */
#define MPOL_F_MEMS_ALLOWED (1 << 2) /* the nodes of the cpuset */

/* Flags of mbind and move_pages */
#define MPOL_MF_STRICT (1 << 0) /* pages elsewhere are an error */
#define MPOL_MF_MOVE (1 << 1) /* move pages of this process alone */
#define MPOL_MF_MOVE_ALL (1 << 2) /* move pages that are shared, too */

#ifdef __cplusplus
}
#endif

#endif

/*
 * Version 1 of the interface for source code, with NUMA_VERSION1_COMPATIBILITY: functions that took a
 * nodemask_t take it again. Included by <numa.h>.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef NUMACOMPAT1_H
#define NUMACOMPAT1_H

/* A mask over the words of a nodemask_t. The functions below do not change what is const. */
static inline struct bitmask numa_compat_mask(const nodemask_t *nodes)
{
	struct bitmask mask;

	mask.size = NUMA_NUM_NODES;
	mask.maskp = (unsigned long *)(size_t)nodes->n;
	return mask;
}

/* Takes the nodes out of a mask and frees it. */
static inline nodemask_t numa_compat_take(struct bitmask *mask)
{
	nodemask_t nodes;

	nodemask_zero_compat(&nodes);
	if (mask)
		copy_bitmask_to_nodemask(mask, &nodes);
	numa_bitmask_free(mask);
	return nodes;
}

static inline void numa_bind_compat(const nodemask_t *nodes)
{
	struct bitmask mask = numa_compat_mask(nodes);

	numa_bind(&mask);
}

static inline void numa_set_membind_compat(const nodemask_t *nodes)
{
	struct bitmask mask = numa_compat_mask(nodes);

	numa_set_membind(&mask);
}

static inline nodemask_t numa_get_membind_compat(void)
{
	return numa_compat_take(numa_get_membind());
}

static inline void numa_set_interleave_mask_compat(const nodemask_t *nodes)
{
	struct bitmask mask = numa_compat_mask(nodes);

	numa_set_interleave_mask(&mask);
}

static inline nodemask_t numa_get_interleave_mask_compat(void)
{
	return numa_compat_take(numa_get_interleave_mask());
}

static inline int numa_run_on_node_mask_compat(const nodemask_t *nodes)
{
	struct bitmask mask = numa_compat_mask(nodes);

	return numa_run_on_node_mask(&mask);
}

static inline nodemask_t numa_get_run_node_mask_compat(void)
{
	return numa_compat_take(numa_get_run_node_mask());
}

static inline void *numa_alloc_interleaved_subset_compat(size_t bytes, const nodemask_t *nodes)
{
	struct bitmask mask = numa_compat_mask(nodes);

	return numa_alloc_interleaved_subset(bytes, &mask);
}

static inline void numa_interleave_memory_compat(void *start, size_t bytes, const nodemask_t *nodes)
{
	struct bitmask mask = numa_compat_mask(nodes);

	numa_interleave_memory(start, bytes, &mask);
}

static inline void numa_tonodemask_memory_compat(void *start, size_t bytes, const nodemask_t *nodes)
{
	struct bitmask mask = numa_compat_mask(nodes);

	numa_tonodemask_memory(start, bytes, &mask);
}

static inline int numa_node_to_cpus_compat(int node, unsigned long *buffer, int bytes)
{
	struct bitmask mask;

	mask.size = bytes > 0 ? (unsigned long)bytes * 8 : 0;
	mask.maskp = buffer;
	return numa_node_to_cpus(node, &mask);
}

static inline int numa_sched_getaffinity_compat(pid_t task, unsigned bytes, unsigned long *buffer)
{
	struct bitmask mask;

	mask.size = (unsigned long)bytes * 8;
	mask.maskp = buffer;
	return numa_sched_getaffinity(task, &mask);
}

static inline int numa_sched_setaffinity_compat(pid_t task, unsigned bytes, unsigned long *buffer)
{
	struct bitmask mask;

	mask.size = (unsigned long)bytes * 8;
	mask.maskp = buffer;
	return numa_sched_setaffinity(task, &mask);
}

#define nodemask_set nodemask_set_compat
#define nodemask_clr nodemask_clr_compat
#define nodemask_isset nodemask_isset_compat
#define numa_bind numa_bind_compat
#define numa_set_membind numa_set_membind_compat
#define numa_get_membind numa_get_membind_compat
#define numa_set_interleave_mask numa_set_interleave_mask_compat
#define numa_get_interleave_mask numa_get_interleave_mask_compat
#define numa_run_on_node_mask numa_run_on_node_mask_compat
#define numa_get_run_node_mask numa_get_run_node_mask_compat
#define numa_alloc_interleaved_subset numa_alloc_interleaved_subset_compat
#define numa_interleave_memory numa_interleave_memory_compat
#define numa_tonodemask_memory numa_tonodemask_memory_compat
#define numa_node_to_cpus numa_node_to_cpus_compat
#define numa_sched_getaffinity numa_sched_getaffinity_compat
#define numa_sched_setaffinity numa_sched_setaffinity_compat

#endif

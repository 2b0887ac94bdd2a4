/*
 * The interface of libnuma: see numa(3). With <numaif.h>, the system calls.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef _NUMA_H /* programs may have a header of their own guarded by NUMA_H */
#define _NUMA_H 1

#include <stddef.h>
#include <stdlib.h> /* sources rely on it */
#include <string.h>
#include <sys/types.h>

/* The generation of the interface: masks of any size. */
#define LIBNUMA_API_VERSION 2

#ifdef __cplusplus
extern "C" {
#endif

/* A mask of bits: nodes or CPUs. */
struct bitmask {
	unsigned long size; /* bits */
	unsigned long *maskp; /* as many words as the bits need */
};

/* The mask of version 1: a fixed size, which is part of the binary interface. */
#if defined(__x86_64__) || defined(__i386__)
#define NUMA_NUM_NODES 128
#else
#define NUMA_NUM_NODES 2048
#endif

typedef struct {
	unsigned long n[NUMA_NUM_NODES / (sizeof(unsigned long) * 8)];
} nodemask_t;

/* ---- Variables, filled before main. Not to be altered. ---- */

extern struct bitmask *numa_all_nodes_ptr; /* nodes that the task may take memory of */
extern struct bitmask *numa_nodes_ptr; /* nodes that exist */
extern struct bitmask *numa_no_nodes_ptr; /* none */
extern struct bitmask *numa_all_cpus_ptr; /* CPUs that the task may run on */
extern nodemask_t numa_all_nodes; /* as numa_all_nodes_ptr, for version 1 */
extern nodemask_t numa_no_nodes;

/* ---- Is it there, and how large is it ---- */

int numa_available(void); /* -1: no other function does anything useful */
int numa_max_possible_node(void);
int numa_num_possible_nodes(void);
int numa_num_possible_cpus(void);
int numa_max_node(void);
int numa_num_configured_nodes(void);
int numa_num_configured_cpus(void);
int numa_num_task_cpus(void);
int numa_num_task_nodes(void);
int numa_num_thread_cpus(void); /* the older name of numa_num_task_cpus */
int numa_num_thread_nodes(void);
int numa_pagesize(void);
int numa_distance(int node1, int node2); /* 0: not known */
long numa_node_size(int node, long *freep); /* bytes; -1: not known */
long long numa_node_size64(int node, long long *freep);

/* ---- Masks ---- */

struct bitmask *numa_bitmask_alloc(unsigned int bits);
void numa_bitmask_free(struct bitmask *mask);
struct bitmask *numa_bitmask_setall(struct bitmask *mask);
struct bitmask *numa_bitmask_clearall(struct bitmask *mask);
struct bitmask *numa_bitmask_setbit(struct bitmask *mask, unsigned int bit);
struct bitmask *numa_bitmask_clearbit(struct bitmask *mask, unsigned int bit);
int numa_bitmask_isbitset(const struct bitmask *mask, unsigned int bit);
int numa_bitmask_equal(const struct bitmask *mask1, const struct bitmask *mask2);
unsigned int numa_bitmask_nbytes(struct bitmask *mask);
unsigned int numa_bitmask_weight(const struct bitmask *mask);
struct bitmask *numa_allocate_nodemask(void);
struct bitmask *numa_allocate_cpumask(void);
void copy_bitmask_to_bitmask(struct bitmask *from, struct bitmask *to);
void copy_bitmask_to_nodemask(struct bitmask *from, nodemask_t *to);
void copy_nodemask_to_bitmask(nodemask_t *from, struct bitmask *to);

static inline void numa_free_nodemask(struct bitmask *mask)
{
	numa_bitmask_free(mask);
}

static inline void numa_free_cpumask(struct bitmask *mask)
{
	numa_bitmask_free(mask);
}

/* ---- Texts ---- */

struct bitmask *numa_parse_nodestring(const char *list); /* NULL: not a list of allowed nodes */
struct bitmask *numa_parse_nodestring_all(const char *list);
struct bitmask *numa_parse_cpustring(const char *list);
struct bitmask *numa_parse_cpustring_all(const char *list);
int numa_parse_bitmap(char *line, struct bitmask *mask); /* "ff,0000000f"; -1: not a mask, or too long */

/* ---- The policy of the calling thread ---- */

struct bitmask *numa_get_mems_allowed(void);
void numa_bind(struct bitmask *nodes);
void numa_set_membind(struct bitmask *nodes);
void numa_set_membind_balancing(struct bitmask *nodes);
struct bitmask *numa_get_membind(void);
void numa_set_interleave_mask(struct bitmask *nodes);
struct bitmask *numa_get_interleave_mask(void);
int numa_get_interleave_node(void);
void numa_set_weighted_interleave_mask(struct bitmask *nodes);
struct bitmask *numa_get_weighted_interleave_mask(void);
void numa_set_localalloc(void);
void numa_set_preferred(int node); /* -1: numa_set_localalloc */
int numa_preferred(void); /* -1: none */
int numa_preferred_err(void);
int numa_has_preferred_many(void);
void numa_set_preferred_many(struct bitmask *nodes);
struct bitmask *numa_preferred_many(void);
void numa_set_bind_policy(int strict); /* for the thread's functions that bind memory */
void numa_set_strict(int strict);

/* ---- Memory ---- */

void *numa_alloc(size_t bytes);
void *numa_alloc_onnode(size_t bytes, int node);
void *numa_alloc_local(size_t bytes);
void *numa_alloc_interleaved(size_t bytes);
void *numa_alloc_interleaved_subset(size_t bytes, struct bitmask *nodes);
void *numa_alloc_weighted_interleaved(size_t bytes);
void *numa_alloc_weighted_interleaved_subset(size_t bytes, struct bitmask *nodes);
void *numa_realloc(void *old, size_t old_bytes, size_t new_bytes);
void numa_free(void *memory, size_t bytes);
void numa_interleave_memory(void *start, size_t bytes, struct bitmask *nodes);
void numa_weighted_interleave_memory(void *start, size_t bytes, struct bitmask *nodes);
void numa_tonode_memory(void *start, size_t bytes, int node);
void numa_tonodemask_memory(void *start, size_t bytes, struct bitmask *nodes);
void numa_setlocal_memory(void *start, size_t bytes);
void numa_police_memory(void *start, size_t bytes);
int numa_has_home_node(void);
int numa_set_mempolicy_home_node(void *start, unsigned long bytes, int node, int flags);

/* ---- CPUs ---- */

int numa_run_on_node(int node); /* -1: on all again */
int numa_run_on_node_mask(struct bitmask *nodes);
int numa_run_on_node_mask_all(struct bitmask *nodes);
struct bitmask *numa_get_run_node_mask(void);
int numa_node_to_cpus(int node, struct bitmask *cpus);
void numa_node_to_cpu_update(void); /* after a CPU was switched on or off */
int numa_node_of_cpu(int cpu);
int numa_sched_getaffinity(pid_t task, struct bitmask *cpus);
int numa_sched_setaffinity(pid_t task, struct bitmask *cpus);

/* ---- Moving pages ---- */

int numa_migrate_pages(int pid, struct bitmask *from, struct bitmask *to);
int numa_move_pages(int pid, unsigned long count, void **pages, const int *nodes, int *status, int flags);

/* ---- Errors. A program may define the two functions itself. ---- */

extern int numa_exit_on_error; /* numa_error ends the program */
extern int numa_exit_on_warn; /* numa_warn ends the program */
extern int numa_fail_alloc_on_error; /* memory whose policy cannot be set is not returned */
void numa_error(char *where);
void numa_warn(int number, char *format, ...);

/* ---- nodemask_t ---- */

static inline void nodemask_zero_compat(nodemask_t *mask)
{
	memset(mask, 0, sizeof *mask);
}

static inline void nodemask_set_compat(nodemask_t *mask, int node)
{
	int bits = (int)(sizeof(unsigned long) * 8);

	if (node >= 0 && node < NUMA_NUM_NODES)
		mask->n[node / bits] |= 1UL << (node % bits);
}

static inline void nodemask_clr_compat(nodemask_t *mask, int node)
{
	int bits = (int)(sizeof(unsigned long) * 8);

	if (node >= 0 && node < NUMA_NUM_NODES)
		mask->n[node / bits] &= ~(1UL << (node % bits));
}

static inline int nodemask_isset_compat(const nodemask_t *mask, int node)
{
	int bits = (int)(sizeof(unsigned long) * 8);

	if (node < 0 || node >= NUMA_NUM_NODES)
		return 0;
	return (mask->n[node / bits] >> (node % bits)) & 1;
}

static inline int nodemask_equal_compat(const nodemask_t *mask1, const nodemask_t *mask2)
{
	return memcmp(mask1, mask2, sizeof *mask1) == 0;
}

static inline void nodemask_zero(nodemask_t *mask)
{
	nodemask_zero_compat(mask);
}

static inline int nodemask_equal(const nodemask_t *mask1, const nodemask_t *mask2)
{
	return nodemask_equal_compat(mask1, mask2);
}

/* Source code of version 1: the functions that took a nodemask_t take it again. */
#ifdef NUMA_VERSION1_COMPATIBILITY
#include <numacompat1.h>
#endif

#ifdef __cplusplus
}
#endif

#endif

/*
 * Nanoseconds of a call: for each the best of several batches, because nothing makes a call faster
 * than it is, and other programs make it slower. Prints "NS NAME" lines.
 */
#define _GNU_SOURCE
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

/* Results go here, so that no call is left out. */
static volatile long sink;

#define BATCHES 7

#define call(name, times, what)                                          \
	do {                                                             \
		double best = 1e18;                                      \
		for (int batch = 0; batch < BATCHES; batch++) {          \
			double start = now(), took;                      \
			for (int i = 0; i < (times); i++) {              \
				what;                                    \
			}                                                \
			took = (now() - start) / (times);                \
			if (took < best)                                 \
				best = took;                             \
		}                                                        \
		printf("%.2f %s\n", best, name);                         \
	} while (0)

int main(void)
{
	struct bitmask *mask = numa_bitmask_alloc(1024), *other = numa_bitmask_alloc(1024);
	struct bitmask *large = numa_bitmask_alloc(8192), *cpus = numa_allocate_cpumask();
	struct bitmask *nodes = numa_allocate_nodemask();
	int last = numa_num_configured_cpus() - 1, many = 100000, some = 10000, few = 1000;
	long long size;
	void *memory;

	numa_bitmask_setbit(nodes, 0);
	call("numa_available", some, sink = numa_available());
	call("numa_max_node", many, sink = numa_max_node());
	call("numa_num_configured_nodes", many, sink = numa_num_configured_nodes());
	call("numa_num_configured_cpus", many, sink = numa_num_configured_cpus());
	call("numa_num_possible_cpus", many, sink = numa_num_possible_cpus());
	call("numa_num_task_cpus", many, sink = numa_num_task_cpus());
	call("numa_pagesize", many, sink = numa_pagesize());
	call("numa_distance", many, sink = numa_distance(0, 0));
	call("numa_node_of_cpu", many, sink = numa_node_of_cpu(last));
	call("numa_node_to_cpus", some, sink = numa_node_to_cpus(0, cpus));
	call("numa_get_run_node_mask + free", some, numa_bitmask_free(numa_get_run_node_mask()));
	call("bitmask 1024 setall", some, numa_bitmask_setall(mask));
	call("bitmask 1024 weight", some, sink = numa_bitmask_weight(mask));
	call("bitmask 1024 clearall", some, numa_bitmask_clearall(mask));
	call("bitmask 1024 equal", some, sink = numa_bitmask_equal(mask, other));
	call("bitmask 1024 copy", some, copy_bitmask_to_bitmask(mask, other));
	call("bitmask 8192 weight", some, sink = numa_bitmask_weight(large));
	call("bitmask setbit", many, numa_bitmask_setbit(mask, i & 1023));
	call("bitmask isbitset", many, sink = numa_bitmask_isbitset(mask, i & 1023));
	call("bitmask clearbit", many, numa_bitmask_clearbit(mask, i & 1023));
	call("numa_allocate_nodemask + free", some, numa_bitmask_free(numa_allocate_nodemask()));
	call("numa_get_mems_allowed + free", some, numa_bitmask_free(numa_get_mems_allowed()));
	call("numa_get_membind + free", some, numa_bitmask_free(numa_get_membind()));
	call("numa_preferred", some, sink = numa_preferred());
	call("numa_parse_nodestring 0 + free", some, numa_bitmask_free(numa_parse_nodestring("0")));
	call("numa_parse_nodestring all + free", some, numa_bitmask_free(numa_parse_nodestring("all")));
	call("numa_parse_cpustring 0 + free", some, numa_bitmask_free(numa_parse_cpustring("0")));
	call("numa_run_on_node", few, sink = numa_run_on_node(0));
	call("numa_run_on_node_mask", few, sink = numa_run_on_node_mask(nodes));
	call("numa_node_size64", few, sink = numa_node_size64(0, &size));
	call("numa_set_membind", some, numa_set_membind(nodes));
	call("numa_set_localalloc", some, numa_set_localalloc());
	call("64 KiB mmap + munmap", few,
	     memory = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	     munmap(memory, 65536));
	call("64 KiB numa_alloc_onnode + free", few, numa_free(numa_alloc_onnode(65536, 0), 65536));
	call("64 KiB numa_alloc_local + free", few, numa_free(numa_alloc_local(65536), 65536));
	call("64 KiB numa_alloc_interleaved + free", few, numa_free(numa_alloc_interleaved(65536), 65536));
	call("64 KiB numa_alloc + free", few, numa_free(numa_alloc(65536), 65536));
	return 0;
}

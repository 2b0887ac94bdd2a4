/* Source code of version 1, and the 14 functions of version 1 by their own version. */
#define NUMA_VERSION1_COMPATIBILITY
#include "show.h"

#ifdef __cplusplus
extern "C" {
#endif
#define OLD(result, name, ...)     \
	result old_##name(__VA_ARGS__); \
	__asm__(".symver old_" #name "," #name "@libnuma_1.1")
#undef numa_bind
#undef numa_set_membind
#undef numa_get_membind
#undef numa_set_interleave_mask
#undef numa_get_interleave_mask
#undef numa_run_on_node_mask
#undef numa_get_run_node_mask
#undef numa_alloc_interleaved_subset
#undef numa_interleave_memory
#undef numa_tonodemask_memory
#undef numa_node_to_cpus
#undef numa_sched_getaffinity
#undef numa_sched_setaffinity
OLD(void, numa_bind, const nodemask_t *);
OLD(void, numa_set_membind, const nodemask_t *);
OLD(nodemask_t, numa_get_membind, void);
OLD(void, numa_set_interleave_mask, const nodemask_t *);
OLD(nodemask_t, numa_get_interleave_mask, void);
OLD(int, numa_run_on_node_mask, const nodemask_t *);
OLD(nodemask_t, numa_get_run_node_mask, void);
OLD(void *, numa_alloc_interleaved_subset, size_t, const nodemask_t *);
OLD(void, numa_interleave_memory, void *, size_t, const nodemask_t *);
OLD(void, numa_tonodemask_memory, void *, size_t, const nodemask_t *);
OLD(int, numa_node_to_cpus, int, unsigned long *, int);
OLD(int, numa_parse_bitmap, char *, unsigned long *, int);
OLD(int, numa_sched_getaffinity, pid_t, unsigned, unsigned long *);
OLD(int, numa_sched_setaffinity, pid_t, unsigned, unsigned long *);
#ifdef __cplusplus
}
#endif

static void show_nodes(const char *what, nodemask_t nodes)
{
	printf("%s: %#lx %#lx\n", what, nodes.n[0], nodes.n[1]);
}

int main(void)
{
	unsigned long cpus[1024] = { 0 }, tiny[1] = { 0 };
	char line[] = "ff,0000000f\n";
	nodemask_t nodes;

	start();
	nodemask_zero(&nodes);
	nodemask_set(&nodes, numa_max_node());
	show(nodemask_isset(&nodes, numa_max_node()));
	show(nodemask_equal(&nodes, &numa_no_nodes));
	run(old_numa_set_membind(&nodes));
	show_policy("membind");
	show_nodes("membind", old_numa_get_membind());
	show_nodes("membind", numa_get_membind_compat());
	run(old_numa_set_interleave_mask(&nodes));
	show_policy("interleave");
	show_nodes("interleave", old_numa_get_interleave_mask());
	show_nodes("interleave", numa_get_interleave_mask_compat());
	run(old_numa_set_interleave_mask(&numa_no_nodes));
	show_policy("interleave over none");
	show_errno(old_numa_run_on_node_mask(&nodes));
	show_nodes("runs on", old_numa_get_run_node_mask());
	show_errno(old_numa_run_on_node_mask(&numa_all_nodes));
	run(old_numa_bind(&nodes));
	show_policy("bind");
	show_nodes("runs on", numa_get_run_node_mask_compat());
	run(old_numa_bind(&numa_all_nodes));
	run(numa_bind_compat(&numa_all_nodes));
	void *memory = old_numa_alloc_interleaved_subset(8192, &nodes);
	show_memory_policy("allocated", memory);
	run(old_numa_interleave_memory(memory, 8192, &numa_all_nodes));
	show_memory_policy("interleaved", memory);
	run(old_numa_tonodemask_memory(memory, 8192, &nodes));
	show_memory_policy("on nodes", memory);
	show_errno(old_numa_node_to_cpus(0, cpus, sizeof cpus));
	show(cpus[0]);
	show_errno(old_numa_node_to_cpus(9, cpus, sizeof cpus));
	show_errno(old_numa_node_to_cpus(0, tiny, 1));
	show_errno(old_numa_parse_bitmap(line, cpus, 64));
	show(cpus[0]);
	show_errno(old_numa_sched_getaffinity(0, sizeof cpus, cpus) > 0);
	show_errno(old_numa_sched_setaffinity(0, sizeof cpus, cpus));
	show_errno(old_numa_sched_getaffinity(77777777, sizeof cpus, cpus));
	return 0;
}

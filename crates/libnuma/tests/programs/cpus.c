/* CPUs and nodes: numa_node_to_cpus, numa_node_of_cpu, numa_run_on_*, numa_sched_*. */
#include "show.h"

static void show_affinity(const char *what)
{
	struct bitmask *cpus = numa_allocate_cpumask();

	numa_sched_getaffinity(0, cpus);
	show_mask(what, cpus);
}

int main(void)
{
	start();
	for (int cpu = 0; cpu < 12; cpu++)
		show_errno(numa_node_of_cpu(cpu));
	show_errno(numa_node_of_cpu(-1));
	show_errno(numa_node_of_cpu(100000));
	for (int update = 0; update < 2; update++) {
		/* Nodes that are there: the answer for others is in the list of differences. */
		for (int node = 0; node <= numa_max_node(); node++) {
			struct bitmask *cpus = numa_allocate_cpumask();

			show_errno(numa_node_to_cpus(node, cpus));
			show_mask("CPUs", cpus);
		}
		numa_node_to_cpu_update();
	}
	struct bitmask *large = numa_bitmask_alloc(5000);
	numa_bitmask_setall(large);
	show_errno(numa_node_to_cpus(0, large));
	show_mask("in a large mask", large);
	struct bitmask *cpus = numa_allocate_cpumask();
	show_errno(numa_node_to_cpus(4000, cpus));
	show(numa_bitmask_weight(cpus));

	show_affinity("at first");
	for (int node = 0; node <= numa_max_node(); node++) {
		struct bitmask *nodes = numa_allocate_nodemask();

		show_errno(numa_run_on_node(node));
		show_affinity("run on a node");
		show_new_mask(numa_get_run_node_mask());
		show_errno(numa_run_on_node(-1));
		show_affinity("run on all");
		numa_bitmask_setbit(nodes, node);
		show_errno(numa_run_on_node_mask(nodes));
		show_affinity("run on a mask");
		numa_bitmask_setbit(nodes, 0);
		show_errno(numa_run_on_node_mask_all(nodes));
		show_affinity("run on a mask of all");
		show_errno(numa_run_on_node_mask(numa_all_nodes_ptr));
		show_affinity("run on all nodes");
		numa_free_nodemask(nodes);
	}
	show_errno(numa_run_on_node(5000));
	show_errno(numa_run_on_node(9));
	show_affinity("after errors");

	numa_bitmask_clearall(cpus);
	numa_bitmask_setbit(cpus, 0);
	show_errno(numa_sched_setaffinity(0, cpus));
	show_affinity("set");
	numa_bitmask_clearall(cpus);
	show_errno(numa_sched_setaffinity(0, cpus));
	show_errno(numa_sched_getaffinity(0, cpus) > 0);
	show_errno(numa_sched_getaffinity(77777777, cpus));
	show_errno(numa_sched_setaffinity(77777777, cpus));
	struct bitmask *nodes = numa_allocate_nodemask();
	show_errno(numa_run_on_node_mask(nodes));
	numa_bitmask_setbit(nodes, 1000);
	show_errno(numa_run_on_node_mask(nodes));
	return 0;
}

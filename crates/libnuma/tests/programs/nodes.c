/* What there is: numa_available, counts, sizes, distances, the variables. */
#include "show.h"

static void show_variable(const char *name, struct bitmask *mask)
{
	struct bitmask *copy = numa_bitmask_alloc(mask->size);

	copy_bitmask_to_bitmask(mask, copy);
	printf("%s, %lu bits: ", name, mask->size);
	show_mask("", copy);
}

int main(void)
{
	start();
	show(numa_available());
	show(numa_max_possible_node());
	show(numa_num_possible_nodes());
	show(numa_num_possible_cpus());
	show(numa_max_node());
	show(numa_num_configured_nodes());
	show(numa_num_configured_cpus());
	show(numa_num_task_nodes());
	show(numa_num_task_cpus());
	show(numa_num_thread_nodes());
	show(numa_num_thread_cpus());
	show(numa_pagesize());
	show(numa_has_preferred_many());
	show_variable("numa_all_nodes_ptr", numa_all_nodes_ptr);
	show_variable("numa_nodes_ptr", numa_nodes_ptr);
	show_variable("numa_no_nodes_ptr", numa_no_nodes_ptr);
	show_variable("numa_all_cpus_ptr", numa_all_cpus_ptr);
	show(numa_all_nodes.n[0]);
	show(numa_no_nodes.n[0]);
	show(numa_exit_on_error);
	show(numa_exit_on_warn);
	show_new_mask(numa_get_mems_allowed());
	for (int from = -2; from < 10; from++) {
		long long size64 = -7;
		long size = -7;

		for (int to = -2; to < 10; to++)
			printf("numa_distance(%d, %d) = %d\n", from, to, numa_distance(from, to));
		printf("node %d:\n", from);
		show_errno(numa_node_size64(from, NULL));
		show(numa_node_size64(from, &size64) == numa_node_size(from, &size));
		/* How much is free changes. */
		show(size64 > 0);
		show(size > 0);
		/* Something is written to it in any case: -1 in 2.0.16, 0 in 2.0.19. */
		show(size64 == -7);
		show(size == -7);
	}
	show(numa_distance(100000, 0));
	return 0;
}

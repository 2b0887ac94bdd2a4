/* The policy of the thread, every function on every node. */
#include "show.h"

static void show_all(const char *what)
{
	show_policy(what);
	show(numa_preferred());
	show_new_mask(numa_get_membind());
	show_new_mask(numa_get_interleave_mask());
	show_new_mask(numa_preferred_many());
}

int main(void)
{
	struct bitmask *nodes = numa_allocate_nodemask(), *small = numa_bitmask_alloc(4);

	start();
	show_all("at first");
	for (int node = 0; node <= numa_max_node() + 1; node++) {
		numa_bitmask_setbit(nodes, node);
		numa_bitmask_clearall(small);
		numa_bitmask_setbit(small, node);
		printf("-- node %d\n", node);
		run(numa_set_membind(nodes));
		show_all("membind");
		run(numa_set_membind(small));
		show_all("membind of a mask of 4 bits");
		run(numa_set_membind_balancing(nodes));
		show_policy("membind with balancing");
		run(numa_set_interleave_mask(nodes));
		show_policy("interleave");
		show(numa_get_interleave_node() >= 0);
		run(numa_set_interleave_mask(small));
		show_all("interleave over a mask of 4 bits");
		run(numa_set_interleave_mask(numa_no_nodes_ptr));
		show_all("interleave over none");
		run(numa_set_preferred(node));
		show_all("preferred");
		run(numa_set_preferred_many(nodes));
		show_all("preferred many");
		run(numa_set_localalloc());
		show_all("local");
		run(numa_set_preferred(-1));
		show_all("preferred -1");
		run(numa_bind(nodes));
		show_all("bind");
		run(numa_bind(numa_all_nodes_ptr));
		run(numa_set_interleave_mask(numa_no_nodes_ptr));
	}
	run(numa_set_membind(numa_no_nodes_ptr));
	show_all("membind of none");
	show(numa_get_interleave_node());
	numa_bitmask_clearall(nodes);
	numa_bitmask_setbit(nodes, 1000);
	run(numa_set_membind(nodes));
	run(numa_set_interleave_mask(nodes));
	run(numa_set_preferred_many(nodes));
	show_all("a node that is not there");
	return 0;
}

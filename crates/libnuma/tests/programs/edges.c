/* Edges of the interface where versions of the original differ or are wrong: what holds for ours. */
#include "show.h"

static int failed;

#define hold(what)                                                  \
	do {                                                        \
		if (!(what)) {                                      \
			printf("line %d: %s\n", __LINE__, #what);   \
			failed = 1;                                 \
		}                                                   \
	} while (0)

static unsigned long nodes_of_policy(int *mode)
{
	unsigned long nodes[64] = { 0 };

	get_mempolicy(mode, nodes, 1025, NULL, 0);
	return nodes[0];
}

static unsigned weight_of(struct bitmask *mask)
{
	unsigned weight = mask ? numa_bitmask_weight(mask) : 9999;

	numa_bitmask_free(mask);
	return weight;
}

/* The highest bit of a mask counts. */
static void highest_bit(void)
{
	int last = numa_max_node(), mode;
	struct bitmask *exact = numa_bitmask_alloc(last + 1);

	numa_bitmask_setbit(exact, last);
	numa_set_membind(exact);
	hold(nodes_of_policy(&mode) == 1UL << last);
	hold(mode == MPOL_BIND);
	numa_bitmask_setall(exact);
	numa_set_interleave_mask(exact);
	hold(nodes_of_policy(&mode) == numa_nodes_ptr->maskp[0]);
	numa_bitmask_free(exact);
	numa_set_localalloc();
}

/* Nodes and CPUs that are not there. */
static void not_there(void)
{
	struct bitmask *cpus = numa_allocate_cpumask(), *small = numa_bitmask_alloc(1), *nodes;

	errno = 0;
	hold(numa_bitmask_alloc(0) == NULL);
	hold(errno == EINVAL);
	for (int node = -3; node < 3; node += 5) {
		errno = 0;
		hold(numa_node_to_cpus(node < 0 ? node : 4000, cpus) == -1);
		hold(errno == ERANGE);
		hold(numa_bitmask_weight(cpus) == 0);
	}
	if (numa_num_possible_cpus() > 64) {
		errno = 0;
		hold(numa_node_to_cpus(0, small) == -1);
		hold(errno == EINVAL);
	}
	errno = 0;
	hold(numa_run_on_node(-2) == -1);
	hold(errno == EINVAL);
	errno = 0;
	numa_set_preferred(5000);
	hold(errno == EINVAL);
	hold(numa_parse_nodestring("4294967296") == NULL);
	hold(numa_parse_cpustring("4294967296") == NULL);
	hold(numa_parse_nodestring(NULL) == NULL);
	nodes = numa_get_run_node_mask();
	hold((int)nodes->size == numa_num_possible_nodes());
	hold(numa_bitmask_weight(nodes) > 0);
	numa_bitmask_free(nodes);
	numa_bitmask_free(NULL);
	hold(numa_bitmask_weight(NULL) == 0);
	numa_set_membind(NULL);
	hold(errno == EINVAL);
	hold(numa_sched_getaffinity(0, NULL) == -1);
	hold(numa_sched_setaffinity(0, NULL) == -1);
	hold(numa_preferred_err() == -1);
}

/* What a text of a mask means. */
static void bitmaps(void)
{
	struct bitmask *mask = numa_bitmask_alloc(96);
	char three[] = "1,2,3\n", bare[] = "3", wrong[] = "zz\n", large[] = "1,0,0,0,0\n", zeros[] = "0,0,0,0,0\n";

	hold(numa_parse_bitmap(three, mask) == 0);
	hold(mask->maskp[0] == (2UL << 32 | 3) && mask->maskp[1] == 1);
	hold(three[1] == ',');
	hold(numa_parse_bitmap(bare, mask) == 0 && mask->maskp[0] == 3);
	hold(numa_parse_bitmap(wrong, mask) == -1);
	hold(numa_parse_bitmap(large, mask) == -1);
	hold(numa_parse_bitmap(zeros, mask) == 0);
}

/* What 2.0.16 does not have. */
static void newer(void)
{
	int mode, node = numa_max_node();
	struct bitmask *nodes = numa_allocate_nodemask();
	void *memory;

	numa_bitmask_setbit(nodes, node);
	hold(numa_has_home_node() == 1);
	memory = numa_alloc_onnode(8192, node);
	hold(numa_set_mempolicy_home_node(memory, 8192, node, 0) == 0);
	hold(numa_set_mempolicy_home_node(memory, 8192, -1, 0) == -1);
	numa_set_membind_balancing(nodes);
	hold(nodes_of_policy(&mode) == 1UL << node);
	hold(mode == (MPOL_BIND | MPOL_F_NUMA_BALANCING));
	hold(weight_of(numa_get_membind()) == 1);
	errno = 0;
	numa_set_weighted_interleave_mask(nodes);
	if (errno == 0) { /* Linux 6.9 */
		hold(nodes_of_policy(&mode) == 1UL << node);
		hold(mode == MPOL_WEIGHTED_INTERLEAVE);
		hold(weight_of(numa_get_weighted_interleave_mask()) == 1);
		hold(weight_of(numa_get_interleave_mask()) == 0);
		memory = numa_alloc_weighted_interleaved(8192);
		get_mempolicy(&mode, NULL, 0, memory, MPOL_F_ADDR);
		hold(mode == MPOL_WEIGHTED_INTERLEAVE);
		memory = numa_alloc_weighted_interleaved_subset(8192, nodes);
		get_mempolicy(&mode, NULL, 0, memory, MPOL_F_ADDR);
		hold(mode == MPOL_WEIGHTED_INTERLEAVE);
		memory = numa_alloc_local(8192);
		numa_weighted_interleave_memory(memory, 8192, nodes);
		get_mempolicy(&mode, NULL, 0, memory, MPOL_F_ADDR);
		hold(mode == MPOL_WEIGHTED_INTERLEAVE);
	}
	numa_set_localalloc();
	hold(numa_alloc_onnode(8192, 4000) != NULL);
	numa_fail_alloc_on_error = 1;
	hold(numa_alloc_onnode(8192, 4000) == NULL);
	numa_fail_alloc_on_error = 0;
}

int main(void)
{
	start();
	highest_bit();
	not_there();
	bitmaps();
	newer();
	puts(failed ? "wrong" : "good");
	return failed;
}

/* Masks: numa_bitmask_*, copy_*. */
#include "show.h"

static struct bitmask *some(unsigned bits)
{
	struct bitmask *mask = numa_bitmask_alloc(bits);

	for (unsigned bit = 0; bit < bits; bit += 7)
		numa_bitmask_setbit(mask, bit);
	return mask;
}

int main(void)
{
	unsigned sizes[] = { 1, 7, 63, 64, 65, 128, 200, 1024, 8192 };

	start();
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct bitmask *mask = some(sizes[i]);

		printf("-- %u bits\n", sizes[i]);
		show(mask->size);
		show(numa_bitmask_nbytes(mask));
		show(numa_bitmask_weight(mask));
		show(numa_bitmask_isbitset(mask, 0));
		show(numa_bitmask_isbitset(mask, sizes[i]));
		show(numa_bitmask_isbitset(mask, 100000));
		show(numa_bitmask_setbit(mask, sizes[i]) == mask);
		show(numa_bitmask_weight(mask));
		show(numa_bitmask_clearbit(mask, 7) == mask);
		show(numa_bitmask_weight(mask));
		for (unsigned j = 0; j < sizeof sizes / sizeof *sizes; j++) {
			struct bitmask *other = some(sizes[j]);
			nodemask_t nodes;

			show(numa_bitmask_equal(mask, other));
			copy_bitmask_to_bitmask(mask, other);
			show(numa_bitmask_weight(other));
			nodemask_zero(&nodes);
			copy_bitmask_to_nodemask(other, &nodes);
			numa_bitmask_setall(other);
			copy_nodemask_to_bitmask(&nodes, other);
			show_mask("copied twice", other);
		}
		show(numa_bitmask_setall(mask) == mask);
		show(numa_bitmask_weight(mask));
		show(numa_bitmask_clearall(mask) == mask);
		show(numa_bitmask_weight(mask));
		numa_bitmask_free(mask);
	}
	struct bitmask *nodes = numa_allocate_nodemask(), *cpus = numa_allocate_cpumask();
	show((int)nodes->size == numa_num_possible_nodes());
	show((int)cpus->size == numa_num_possible_cpus());
	show(numa_bitmask_weight(nodes) + numa_bitmask_weight(cpus));
	numa_free_nodemask(nodes);
	numa_free_cpumask(cpus);
	return 0;
}

/* The variables of the library, as a program sees them before it calls anything. */
#include "show.h"

int main(void)
{
	int good = numa_all_nodes_ptr && numa_nodes_ptr && numa_no_nodes_ptr && numa_all_cpus_ptr &&
		   numa_bitmask_weight(numa_nodes_ptr) > 0 && numa_bitmask_weight(numa_all_cpus_ptr) > 0 &&
		   numa_bitmask_weight(numa_no_nodes_ptr) == 0 &&
		   numa_all_nodes.n[0] == numa_all_nodes_ptr->maskp[0] && numa_all_nodes.n[0] != 0 &&
		   numa_no_nodes.n[0] == 0 && !numa_exit_on_error && !numa_exit_on_warn && !numa_fail_alloc_on_error;

	puts(good ? "good" : "wrong");
	return !good;
}

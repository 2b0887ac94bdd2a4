/* Moving pages from node to node. */
#include "show.h"

int main(void)
{
	struct bitmask *from = numa_allocate_nodemask(), *to = numa_bitmask_alloc(8);
	int last = numa_max_node(), node = -7, moved = last;
	char *memory;
	void *page;

	start();
	numa_run_on_node(0);
	memory = (char *)numa_alloc_local(4096);
	page = memory;
	memory[0] = 1;
	show_errno(numa_move_pages(0, 1, &page, NULL, &node, 0));
	show(node);
	show_errno(numa_move_pages(0, 1, &page, &moved, &node, MPOL_MF_MOVE));
	show(node == last);
	show_errno(numa_move_pages(0, 1, &page, NULL, &node, 0));
	show(node == last);
	moved = 9;
	show_errno(numa_move_pages(0, 1, &page, &moved, &node, MPOL_MF_MOVE));
	show(node);
	numa_bitmask_setbit(from, last);
	numa_bitmask_setbit(to, 0);
	show_errno(numa_migrate_pages(0, from, to));
	show_errno(numa_move_pages(0, 1, &page, NULL, &node, 0));
	show(node);
	show_errno(numa_migrate_pages(77777777, from, to));
	numa_bitmask_clearall(to);
	show_errno(numa_migrate_pages(0, from, to));
	return 0;
}

/* Memory with policies: numa_alloc_*, numa_*_memory; where the pages are. */
#include "show.h"

#define BYTES (64UL << 12)

static void show_pages(const char *what, char *memory)
{
	void *pages[64];
	int status[64], count[64] = { 0 };

	for (int i = 0; i < 64; i++) {
		pages[i] = memory + ((long)i << 12);
		status[i] = -99;
	}
	show_errno(numa_move_pages(0, 64, pages, NULL, status, 0));
	for (int i = 0; i < 64; i++)
		if (status[i] >= 0 && status[i] < 64)
			count[status[i]]++;
	printf("%s:", what);
	for (int i = 0; i < 64; i++)
		if (count[i])
			printf(" N%d=%d", i, count[i]);
	puts("");
}

static void look(const char *what, void *memory)
{
	if (!memory) {
		printf("%s: NULL\n", what);
		return;
	}
	show_memory_policy(what, memory);
	numa_police_memory(memory, BYTES);
	show_pages(what, (char *)memory);
	run(numa_free(memory, BYTES));
}

static void *plain(void)
{
	void *memory = numa_alloc_local(BYTES);

	numa_setlocal_memory(memory, BYTES);
	return memory;
}

int main(void)
{
	start();
	numa_run_on_node(0);
	look("local", numa_alloc_local(BYTES));
	look("alloc", numa_alloc(BYTES));
	look("interleaved", numa_alloc_interleaved(BYTES));
	for (int policy = 1; policy >= 0; policy--) {
		numa_set_bind_policy(policy);
		for (int strict = 0; strict < 2; strict++) {
			numa_set_strict(strict);
			for (int node = 0; node <= numa_max_node(); node++) {
				struct bitmask *nodes = numa_allocate_nodemask();
				void *memory = plain();

				printf("-- node %d bind policy %d strict %d\n", node, policy, strict);
				look("on a node", numa_alloc_onnode(BYTES, node));
				numa_bitmask_setbit(nodes, node);
				numa_bitmask_setbit(nodes, 0);
				look("over a subset", numa_alloc_interleaved_subset(BYTES, nodes));
				run(numa_tonode_memory(memory, BYTES, node));
				look("to a node", memory);
				memory = plain();
				run(numa_tonodemask_memory(memory, BYTES, nodes));
				look("to a mask", memory);
				memory = plain();
				run(numa_interleave_memory(memory, BYTES, nodes));
				look("interleaved", memory);
				numa_free_nodemask(nodes);
			}
		}
	}
	numa_set_bind_policy(1);
	numa_set_strict(0);
	look("on a node that is not there", numa_alloc_onnode(BYTES, 9));
	look("on node -1", numa_alloc_onnode(BYTES, -1));
	look("on a node beyond all", numa_alloc_onnode(BYTES, 5000));
	look("nothing", numa_alloc_onnode(0, 0));
	look("nothing", numa_alloc(0));
	look("too much", numa_alloc((size_t)-1));
	run(numa_tonode_memory((void *)8, BYTES, 0));
	run(numa_setlocal_memory((void *)8, BYTES));
	run(numa_interleave_memory((void *)8, BYTES, numa_all_nodes_ptr));
	run(numa_interleave_memory(NULL, 0, numa_no_nodes_ptr));
	run(numa_free((void *)1, 4096));

	char *memory = (char *)numa_alloc_onnode(BYTES / 2, numa_max_node());
	memory[0] = 7;
	memory = (char *)numa_realloc(memory, BYTES / 2, BYTES);
	show(memory[0]);
	look("grown", memory);
	memory = (char *)numa_alloc(BYTES);
	show_errno(numa_realloc(memory, BYTES, 0) != NULL);
	memory = (char *)numa_realloc(memory, BYTES, 4096);
	show(memory != NULL);
	run(numa_free(memory, 4096));
	return 0;
}

/* On which nodes the pages of arrays are: move_pages(2) without nodes to move to. */
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARRAYS 4
#define PAGE 4096ul
#define NODES 16

static struct {
	char *start;
	size_t bytes;
} arrays[ARRAYS];

/* Adds an array. */
static void keep(void *start, size_t bytes)
{
	static int count;
	int at = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);

	if (at < ARRAYS) {
		arrays[at].start = start;
		arrays[at].bytes = bytes;
	}
}

/* Prints pages of all arrays by node; those that were never touched have none. */
static void report(const char *name)
{
	long pages[NODES] = {0};
	void *page;
	int node;

	for (int at = 0; at < ARRAYS; at++)
		for (size_t byte = 0; byte < arrays[at].bytes; byte += PAGE) {
			page = arrays[at].start + byte;
			if (!syscall(SYS_move_pages, 0, 1ul, &page, NULL, &node, 0) && node >= 0 && node < NODES)
				pages[node]++;
		}
	fprintf(stderr, "placed %s", name);
	for (node = 0; node < NODES; node++)
		fprintf(stderr, " %ld", pages[node]);
	fprintf(stderr, "\n");
}

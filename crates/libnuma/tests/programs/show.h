/* What the programs have in common: printing what was asked, and what came. */
#ifndef SHOW_H
#define SHOW_H

#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define show(what) printf("%s = %lld\n", #what, (long long)(what))

/* A call with the errno it leaves. */
#define show_errno(what)                                                   \
	do {                                                               \
		errno = 0;                                                 \
		long long result_ = (long long)(what);                     \
		printf("%s = %lld, errno %d\n", #what, result_, errno);    \
	} while (0)

/* A call without a result, with the errno it leaves. */
#define run(what)                                            \
	do {                                                 \
		errno = 0;                                   \
		what;                                        \
		printf("%s: errno %d\n", #what, errno);      \
	} while (0)

/* A mask, and frees it. */
static inline void show_mask(const char *what, struct bitmask *mask)
{
	printf("%s:", what);
	if (!mask) {
		puts(" NULL");
		return;
	}
	for (unsigned bit = 0; bit < mask->size; bit++)
		if (numa_bitmask_isbitset(mask, bit))
			printf(" %u", bit);
	puts("");
	numa_bitmask_free(mask);
}

#define show_new_mask(what) show_mask(#what, what)

/* The policy of the thread and its nodes. */
static inline void show_policy(const char *what)
{
	int mode = -1;
	unsigned long nodes[64] = { 0 };

	get_mempolicy(&mode, nodes, 1025, NULL, 0);
	printf("%s: mode %#x nodes %#lx\n", what, mode, nodes[0]);
}

/* The policy of memory. */
static inline void show_memory_policy(const char *what, void *memory)
{
	int mode = -1;
	unsigned long nodes[64] = { 0 };

	get_mempolicy(&mode, nodes, 1025, memory, MPOL_F_ADDR);
	printf("%s: mode %#x nodes %#lx\n", what, mode, nodes[0]);
}

/* Errors of the library go where they can be compared. */
static inline void start(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	dup2(1, 2);
}

#endif

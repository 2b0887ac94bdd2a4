/* Two threads that set bits of one mask: a race, which a race checker must see. */
#include <pthread.h>

#include "show.h"

static struct bitmask *mask;

static void *set(void *unused)
{
	for (unsigned bit = 0; bit < 1000; bit++)
		numa_bitmask_setbit(mask, bit & 63);
	return unused;
}

int main(void)
{
	pthread_t threads[2];

	mask = numa_bitmask_alloc(64);
	for (int i = 0; i < 2; i++)
		pthread_create(threads + i, NULL, set, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	puts("good");
	return 0;
}

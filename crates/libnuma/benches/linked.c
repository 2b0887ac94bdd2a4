/* A program that is linked with the library and does nothing with it; with NONE, without. */
#ifndef NONE
#include <numa.h>

void *volatile kept = (void *)numa_available;
#endif

int main(void)
{
	return 0;
}

/* What a library needs that was compiled for a sanitizer: paths to a panic are left in it. */
#include <stdlib.h>

void nodewise_libnuma_a_panic_can_be_reached(void)
{
	abort();
}

void rust_eh_personality(void)
{
	abort();
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nodewise.h - phases of a program, for `nodewise lab --count`.
 *
 * nodewise_phase("solve") names what the process does from now on, in all of its threads. Processes that it starts
 * begin in the same phase. An empty name, or NULL, ends the phase. Names have up to 24 bytes; longer ones are cut.
 *
 * Where nothing counts, this is a no-op with arguments (x86-64), or nothing (elsewhere): it may stay in a program.
 */
#ifndef NODEWISE_H
#define NODEWISE_H

#include <stdint.h>

static inline void nodewise_phase(const char *name)
{
#if defined(__x86_64__)
	uint64_t words[3] = {0, 0, 0};
	unsigned int at;

	for (at = 0; name && name[at] && at < 24; at++)
		words[at / 8] |= (uint64_t)(unsigned char)name[at] << (at % 8 * 8);
	/* nopl 0x6e6f6465(%rax); "memory" keeps accesses on their side of it. */
	__asm__ __volatile__(".byte 0x0f, 0x1f, 0x80, 0x65, 0x64, 0x6f, 0x6e"
			     :
			     : "a"(UINT64_C(0x6e6f646577690006)), "D"(words[0]), "S"(words[1]), "d"(words[2])
			     : "memory");
#else
	(void)name;
#endif
}

#endif

/*
 * Version 1 of functions that version 2 has by the same names (compat1.rs). A stub and its name with
 * the version stand in one file: apart, the linker loses the name without a word.
 */
#if defined(__x86_64__) || defined(__i386__)
#define GO jmp
#elif defined(__aarch64__)
#define GO b
#elif defined(__riscv)
#define GO tail
#elif defined(__powerpc64__) && _CALL_ELF == 2
#define GO b
#define HAS_TOC
#else
#error "say here how this machine jumps"
#endif

.macro version1 name
	.globl	nodewise_stub_\name
	.type	nodewise_stub_\name, %function
	.p2align 4
nodewise_stub_\name:
#ifdef HAS_TOC
	/* Callers outside of the library come with its address in r12; the branch expects the table of contents in r2. */
	addis	2, 12, .TOC. - nodewise_stub_\name@ha
	addi	2, 2, .TOC. - nodewise_stub_\name@l
	.localentry	nodewise_stub_\name, . - nodewise_stub_\name
#endif
	GO	nodewise_v1_\name
	.size	nodewise_stub_\name, . - nodewise_stub_\name
	.symver	nodewise_stub_\name, \name@libnuma_1.1
.endm

	.text
	version1 numa_alloc_interleaved_subset
	version1 numa_bind
	version1 numa_get_interleave_mask
	version1 numa_get_membind
	version1 numa_get_run_node_mask
	version1 numa_interleave_memory
	version1 numa_node_to_cpus
	version1 numa_parse_bitmap
	version1 numa_run_on_node_mask
	version1 numa_sched_getaffinity
	version1 numa_sched_setaffinity
	version1 numa_set_interleave_mask
	version1 numa_set_membind
	version1 numa_tonodemask_memory

	.section .note.GNU-stack, "", %progbits

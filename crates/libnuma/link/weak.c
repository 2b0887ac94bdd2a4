/*
 * What Rust cannot define: functions that a program may replace by its own (weak symbols), one with
 * any number of arguments, and numbers that every thread has for itself.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WEAK __attribute__((weak))

extern int numa_exit_on_error, numa_exit_on_warn;

/* Called when a function failed, with errno. */
WEAK void numa_error(char *where)
{
	int saved = errno;

	perror(where);
	if (numa_exit_on_error)
		exit(1);
	errno = saved;
}

/* Called with the number of a warning; each number is shown once. */
WEAK void numa_warn(int number, char *format, ...)
{
	static unsigned shown;
	unsigned bit = 1u << (number & 31);
	int saved = errno;
	va_list arguments;

	if (!(__atomic_fetch_or(&shown, bit, __ATOMIC_RELAXED) & bit)) {
		char text[1200];

		va_start(arguments, format);
		vsnprintf(text, sizeof text, format, arguments);
		va_end(arguments);
		fprintf(stderr, "libnuma: Warning: %s\n", text);
	}
	if (numa_exit_on_warn)
		exit(1);
	errno = saved;
}

/* See memory.rs: whether the thread prefers, and its flags for mbind. */
struct thread {
	int prefers;
	unsigned flags;
};

struct thread *nodewise_libnuma_thread(void)
{
	static __thread struct thread thread;

	return &thread;
}

/* The system calls of numaif.h, which no libc has. */

WEAK long get_mempolicy(int *mode, unsigned long *nodes, unsigned long maxnode, void *address, unsigned flags)
{
	return syscall(SYS_get_mempolicy, mode, nodes, maxnode, address, flags);
}

WEAK long set_mempolicy(int mode, const unsigned long *nodes, unsigned long maxnode)
{
	return syscall(SYS_set_mempolicy, mode, nodes, maxnode);
}

WEAK long mbind(void *start, unsigned long bytes, int mode, const unsigned long *nodes, unsigned long maxnode,
		unsigned flags)
{
	return syscall(SYS_mbind, start, bytes, mode, nodes, maxnode, flags);
}

WEAK long migrate_pages(int process, unsigned long maxnode, const unsigned long *from, const unsigned long *to)
{
	return syscall(SYS_migrate_pages, process, maxnode, from, to);
}

WEAK long move_pages(int process, unsigned long count, void **pages, const int *nodes, int *status, int flags)
{
	return syscall(SYS_move_pages, process, count, pages, nodes, status, flags);
}

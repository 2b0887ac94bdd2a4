/*
 * Runs programs one after the other, each in a phase of its name for nodewise lab --count, and says on which nodes their
 * anonymous memory was when it was largest: watch [WORD...] -- NAME LINE [NAME LINE]...
 * The words start each line of a shell, such as those of numactl. A line of output for each program: its name, its exit
 * status, and pages by node.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nodewise.h"

#define NODES 16
#define WORDS 32
/* Between two looks at a program, in microseconds. */
#define PAUSE 50000

static cpu_set_t all, last;

/* Adds the pages of a process that no file has. */
static void add(const char *process, long *pages)
{
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *maps;

	snprintf(path, sizeof path, "/proc/%.16s/numa_maps", process);
	maps = fopen(path, "r");
	if (!maps)
		return;
	while (getline(&line, &room, maps) > 0) {
		char *word, *rest = line;
		int node;
		long count;

		if (!strstr(line, " anon=") || strstr(line, " file="))
			continue;
		while ((word = strsep(&rest, " \n")))
			if (sscanf(word, "N%d=%ld", &node, &count) == 2 && node >= 0 && node < NODES)
				pages[node] += count;
	}
	free(line);
	fclose(maps);
}

/* Whether a process is of a group. */
static int is_of(const char *process, pid_t group)
{
	char path[64], text[512], *end;
	int file, length, found;

	snprintf(path, sizeof path, "/proc/%.16s/stat", process);
	file = open(path, O_RDONLY);
	if (file < 0)
		return 0;
	length = read(file, text, sizeof text - 1);
	close(file);
	text[length > 0 ? length : 0] = 0;
	end = strrchr(text, ')');
	return end && sscanf(end, ") %*c %*d %d", &found) == 1 && found == group;
}

/* Looks at all processes of a group, and keeps the pages where they are the most so far. */
static void look(pid_t group, long *most)
{
	long pages[NODES] = {0}, now = 0, before = 0;
	struct dirent *entry;
	DIR *folder = opendir("/proc");

	if (!folder)
		return;
	while ((entry = readdir(folder)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && is_of(entry->d_name, group))
			add(entry->d_name, pages);
	closedir(folder);
	for (int node = 0; node < NODES; node++) {
		now += pages[node];
		before += most[node];
	}
	if (now > before)
		memcpy(most, pages, sizeof pages);
}

/* Becomes a program, in its phase. */
static void become(char **words, int count, char *name, char *line)
{
	char *argv[WORDS + 4];
	int null = open("/dev/null", O_WRONLY);

	setpgid(0, 0);
	dup2(null, 1);
	memcpy(argv, words, count * sizeof *words);
	argv[count] = "sh";
	argv[count + 1] = "-c";
	argv[count + 2] = line;
	argv[count + 3] = NULL;
	nodewise_phase(name);
	execvp(argv[0], argv);
	_exit(127);
}

static void run(char **words, int count, char *name, char *line)
{
	long most[NODES] = {0};
	int status;
	pid_t child = fork();

	if (child < 0)
		exit(3);
	if (!child)
		become(words, count, name, line);
	setpgid(child, child);
	/* The program may run on all CPUs; its watch is on the last. */
	sched_setaffinity(0, sizeof last, &last);
	while (waitpid(child, &status, WNOHANG) == 0) {
		usleep(PAUSE);
		look(child, most);
	}
	sched_setaffinity(0, sizeof all, &all);
	printf("watched %s %d", name, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	for (int node = 0; node < NODES; node++)
		printf(" %ld", most[node]);
	printf("\n");
	fflush(stdout);
}

int main(int count, char **words)
{
	int own = 1;

	while (own < count && strcmp(words[own], "--"))
		own++;
	if (own > WORDS || (count - own) % 2 == 0) {
		fprintf(stderr, "usage: watch [WORD...] -- NAME LINE [NAME LINE]...\n");
		return 2;
	}
	sched_getaffinity(0, sizeof all, &all);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &last);
	for (int at = own + 1; at + 1 < count; at += 2)
		run(words + 1, own - 1, words[at], words[at + 1]);
	return 0;
}

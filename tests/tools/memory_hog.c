/* A neighbour who wants the memory for himself: streams through so many MiB for ever. tool-memory_hog MIB */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
	size_t bytes = (argc > 1 ? strtoul(argv[1], NULL, 10) : 0) << 20;
	volatile uint64_t *words =
		bytes > 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;

	if (words == MAP_FAILED) {
		fprintf(stderr, "tool-memory_hog: expected MiB that can be had\n");
		return 2;
	}
	for (uint64_t round = 1;; round++)
		for (size_t i = 0; i < bytes / sizeof(*words); i += 8) /* one word a line of cache */
			words[i] += round;
}

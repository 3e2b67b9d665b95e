/* Preloaded and run before every other constructor (-z initfirst): allocates, and says so if libpolicy has not started
 * by then. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((weak)) int pageclear_status(char *text, size_t size);

__attribute__((constructor)) static void start(void)
{
	static const char said[] = "first: libpolicy has not started\n";
	char text[200] = "";
	void *volatile block = malloc(70000);

	free(block);
	if (pageclear_status != NULL && pageclear_status(text, sizeof(text)) == 1 &&
	    strncmp(text, "libc only", 9) == 0 && write(STDOUT_FILENO, said, sizeof(said) - 1) < 0)
		_exit(1);
}

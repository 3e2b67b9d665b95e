/* What goes over the bus as texts and descriptors; the bus itself is tested in tests/cli/bus.bats. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calibrd/bus_parts.h"
#include "libpolicy/document.h"
#include "tests/unit/harness.h"

/* --- texts ------------------------------------------------------------------------------------------------------- */

static void becomes(const char *text, const char *expected)
{
	char out[64];

	memset(out, 'x', sizeof(out));
	bus_text(out, sizeof(out), text);
	CU_ASSERT_STRING_EQUAL(out, expected);
}

static void whole_characters_stay(void)
{
	becomes("", "");
	becomes("pass 2 of 4", "pass 2 of 4");
	becomes("a\tb\nc\x7f", "a\tb\nc\x7f");
	becomes("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
	becomes("\xc2\x80\xe0\xa0\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbd",
	        "\xc2\x80\xe0\xa0\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbd");
}

static void bytes_that_are_none(void)
{
	becomes("\xff", "?");
	becomes("a\x80z", "a?z");
	becomes("\xc0\xaf", "??");           /* overlong */
	becomes("\xe0\x80\xaf", "???");      /* overlong */
	becomes("\xf0\x8f\xbf\xbf", "????"); /* overlong */
	becomes("\xed\xa0\x80", "???");      /* a surrogate */
	becomes("\xef\xbf\xbe", "???");      /* U+FFFE */
	becomes("\xef\xb7\x90", "???");      /* U+FDD0 */
	becomes("\xf4\x90\x80\x80", "????"); /* beyond U+10FFFF */
	becomes("\xf8\x88\x80\x80\x80", "?????");
	becomes("\xe2\x82", "??"); /* ends in the middle */
	becomes("\xe2(\xa1", "?(?");
}

/* In the middle of a character nothing of it is left. */
static void long_ones_are_cut(void)
{
	char text[200], out[8];

	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	bus_text(out, sizeof(out), text);
	CU_ASSERT_STRING_EQUAL(out, "aaaaaaa");
	for (size_t before = 4; before <= 6; before++) {
		memcpy(text + before, "\xe2\x82\xac\xff", 5);
		bus_text(out, sizeof(out), text);
		CU_ASSERT_EQUAL(strlen(out), before == 4 ? 7 : before);
		memset(text, 'a', 16);
	}
	bus_text(out, 1, "abc");
	CU_ASSERT_STRING_EQUAL(out, "");
}

/* --- descriptors ------------------------------------------------------------------------------------------------- */

/* reason: "": it is read. Closes it. */
static void descriptor(int fd, int code, const char *reason)
{
	struct pc_why why = {""};
	char *text = NULL;
	size_t len = 77;

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(bus_read_policy(fd, &text, &len, &why), code);
	CU_ASSERT_STRING_EQUAL(why.text, reason);
	CU_ASSERT_EQUAL(text != NULL, code == 0);
	free(text);
	close(fd);
}

static int memory(size_t len)
{
	static char bytes[PC_DOCUMENT_MAX_BYTES + 1];
	int fd = memfd_create("policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	memset(bytes, '#', sizeof(bytes));
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL_FATAL(write(fd, bytes, len), (ssize_t)len);
	return fd;
}

/* From its beginning, wherever the sender left off. */
static void what_is_read(void)
{
	struct pc_why why = {""};
	char *text = NULL;
	size_t len = 0;
	int fd = memory(0);

	CU_ASSERT_EQUAL(dprintf(fd, "format: 1\n"), 10);
	CU_ASSERT_EQUAL(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW), 0);
	CU_ASSERT_EQUAL_FATAL(bus_read_policy(fd, &text, &len, &why), 0);
	CU_ASSERT_EQUAL(len, 10);
	CU_ASSERT_STRING_EQUAL(text, "format: 1\n");
	free(text);
	close(fd);
	descriptor(open("Makefile", O_RDONLY | O_CLOEXEC), 0, "");
	descriptor(memory(PC_DOCUMENT_MAX_BYTES), 0, "");
}

static void what_is_not(void)
{
	int pipes[2], sockets[2];

	CU_ASSERT_EQUAL_FATAL(pipe2(pipes, O_CLOEXEC), 0);
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	descriptor(memory(PC_DOCUMENT_MAX_BYTES + 1), -EFBIG, "a policy of 65537 bytes, 65536 are the most");
	descriptor(memory(0), -EINVAL, "the policy's file is empty");
	descriptor(open("/proc/self/status", O_RDONLY | O_CLOEXEC), -EINVAL, "the policy's file is empty");
	descriptor(open("Makefile", O_PATH | O_CLOEXEC), -EINVAL, "the policy's descriptor is not open for reading");
	descriptor(open("/tmp", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600), -EINVAL,
	           "the policy's descriptor is not open for reading");
	descriptor(pipes[0], -EINVAL, "a policy is read from a regular file or a memfd; this descriptor is a pipe");
	descriptor(sockets[0], -EINVAL, "a policy is read from a regular file or a memfd; this descriptor is a socket");
	descriptor(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), -EINVAL,
	           "a policy is read from a regular file or a memfd; this descriptor is a directory");
	descriptor(open("/dev/zero", O_RDONLY | O_CLOEXEC), -EINVAL,
	           "a policy is read from a regular file or a memfd; this descriptor is a character device");
	descriptor(epoll_create1(EPOLL_CLOEXEC), -EINVAL,
	           "a policy is read from a regular file or a memfd; this descriptor is neither");
	close(pipes[1]);
	close(sockets[1]);
}

static const struct unit_test tests[] = {
	{"whole characters stay", whole_characters_stay},
	{"bytes that are none", bytes_that_are_none},
	{"long ones are cut", long_ones_are_cut},
	{"what is read", what_is_read},
	{"what is not", what_is_not},
};

UNIT_MAIN("bus", tests)

/* The kernel's uevents: hostile texts, senders that are not the kernel, and this kernel's own. */
#include <errno.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calibrd/watch_parts.h"
#include "tests/unit/harness.h"
#include "tests/unit/trees.h"
#include "tests/unit/uevents.h"

/* --- texts ------------------------------------------------------------------------------------------------------- */

/* -1: nothing that is watched. The text ends where its array does, in one NUL. */
static int parsed(const char *text, size_t size)
{
	char *exact = malloc(size); /* what is read beyond it, a sanitizer sees */
	enum watch_cause cause = WATCH_DAILY;
	int result;

	CU_ASSERT_PTR_NOT_NULL_FATAL(exact);
	memcpy(exact, text, size);
	result = watch_uevent_parse(exact, size, &cause) ? (int)cause : -1;
	free(exact);
	return result;
}

#define PARSED(literal) parsed(literal, sizeof(literal))

static void test_texts(void)
{
	CU_ASSERT_EQUAL(PARSED("offline@/devices/system/cpu/cpu1\0ACTION=offline\0DEVPATH=/devices/system/cpu/cpu1\0"
	                       "SUBSYSTEM=cpu\0DRIVER=processor\0SEQNUM=1234"),
	                WATCH_CPUS);
	CU_ASSERT_EQUAL(PARSED("online@/d\0ACTION=online\0SUBSYSTEM=cpu"), WATCH_CPUS);
	CU_ASSERT_EQUAL(PARSED("add@/d\0SUBSYSTEM=cpu\0ACTION=add"), WATCH_CPUS);
	CU_ASSERT_EQUAL(PARSED("remove@/d\0ACTION=remove\0SUBSYSTEM=cpu"), WATCH_CPUS);
	CU_ASSERT_EQUAL(PARSED("change@/d\0ACTION=change\0SUBSYSTEM=power_supply\0POWER_SUPPLY_ONLINE=0"), WATCH_POWER);
	CU_ASSERT_EQUAL(PARSED("change@/d\0ACTION=change\0SUBSYSTEM=cpu"), -1);
	CU_ASSERT_EQUAL(PARSED("bind@/d\0ACTION=bind\0SUBSYSTEM=cpu"), -1);
	CU_ASSERT_EQUAL(PARSED("online@/d\0ACTION=online\0SUBSYSTEM=memory"), -1);
	CU_ASSERT_EQUAL(PARSED("add@/d\0ACTION=add\0SUBSYSTEM=net\0INTERFACE=cpu"), -1);
}

static void test_hostile_texts(void)
{
	static const char unended[] = {'o', '@', '/', '\0', 'A', 'C', 'T'};
	char large[4096];

	CU_ASSERT_EQUAL(parsed("", 0), -1);
	CU_ASSERT_EQUAL(PARSED(""), -1);
	CU_ASSERT_EQUAL(parsed("\0\0\0\0", 4), -1);
	CU_ASSERT_EQUAL(parsed(unended, sizeof(unended)), -1);
	CU_ASSERT_EQUAL(PARSED("online"), -1);
	CU_ASSERT_EQUAL(PARSED("@/d\0ACTION=online\0SUBSYSTEM=cpu"), -1);
	CU_ASSERT_EQUAL(PARSED("online@\0ACTION=online\0SUBSYSTEM=cpu"), -1);
	CU_ASSERT_EQUAL(PARSED("libudev\0\xfe\xed\xca\xfe\0ACTION=online\0SUBSYSTEM=cpu"), -1); /* udevd's */
	CU_ASSERT_EQUAL(PARSED("online@/d\0ACTION=online"), -1);
	CU_ASSERT_EQUAL(PARSED("online@/d\0SUBSYSTEM=cpu"), -1);
	CU_ASSERT_EQUAL(PARSED("online@/d\0ACTION\0SUBSYSTEM\0=\0==\0\0"), -1);
	CU_ASSERT_EQUAL(PARSED("online@/d\0ACTION=\0SUBSYSTEM="), -1);
	CU_ASSERT_EQUAL(PARSED("online@/d\0ACTION=online\0SUBSYSTEM=cpus"), -1);
	CU_ASSERT_EQUAL(PARSED("online@/d\0ACTION=online\0SUBSYSTEM=cp"), -1);
	CU_ASSERT_EQUAL(PARSED("online@/d\0ACTION=online\0XSUBSYSTEM=cpu"), -1);
	CU_ASSERT_EQUAL(PARSED("online@/d\0ACTION=online\0SUBSYSTEM=net\0SUBSYSTEM=cpu"), -1); /* twice */
	CU_ASSERT_EQUAL(PARSED("online@/d\0ACTION=online\0ACTION=online\0SUBSYSTEM=cpu"), -1);
	memset(large, 'x', sizeof(large));
	large[sizeof(large) - 1] = '\0';
	CU_ASSERT_EQUAL(parsed(large, sizeof(large)), -1);
}

/* --- who sent it ------------------------------------------------------------------------------------------------- */

/* A socket that hears uevents, or -1 and a skip. */
static int hear(void)
{
	int fd = watch_uevent_open();

	if (fd < 0)
		unit_skip("no uevents here: %s", strerror(-fd));
	return fd;
}

/* Until there is none left: how many of that cause. */
static unsigned heard(int fd, enum watch_cause wanted)
{
	enum watch_cause cause;
	unsigned count = 0;
	int r;

	while ((r = watch_uevent_receive(fd, &cause)) != -EAGAIN) {
		CU_ASSERT_FATAL(r == 0 || r == 1);
		count += r == 0 && cause == wanted;
	}
	return count;
}

static const char online[] = "online@/devices/system/cpu/cpu0\0ACTION=online\0SUBSYSTEM=cpu";

/* What another process with CAP_NET_ADMIN can send: the kernel lets it, the watch doesn't believe it. */
static void test_others_are_not_believed(void)
{
	struct sockaddr_nl to = {.nl_family = AF_NETLINK}, mine;
	socklen_t size = sizeof(mine);
	enum watch_cause cause;
	int fd = hear(), sender;

	if (fd < 0)
		return;
	CU_ASSERT_EQUAL_FATAL(getsockname(fd, (struct sockaddr *)&mine, &size), 0);
	to.nl_pid = mine.nl_pid;
	sender = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
	CU_ASSERT_FATAL(sender >= 0);
	(void)heard(fd, WATCH_CPUS);
	if (sendto(sender, online, sizeof(online), 0, (struct sockaddr *)&to, sizeof(to)) < 0) {
		unit_skip("no message can be sent to the watch: %m");
	} else { /* it arrived, and is none */
		int r = watch_uevent_receive(fd, &cause);

		CU_ASSERT_EQUAL(r, 1);
	}
	to = (struct sockaddr_nl){.nl_family = AF_NETLINK, .nl_groups = 1}; /* to the kernel's group itself */
	if (sendto(sender, online, sizeof(online), 0, (struct sockaddr *)&to, sizeof(to)) >= 0)
		CU_ASSERT_EQUAL(heard(fd, WATCH_CPUS), 0);
	close(sender);
	close(fd);
}

static void test_kernel_is_believed(void)
{
	int fd = hear();

	if (fd < 0)
		return;
	if (!watch_uevent_may_come(NULL) || !provoke("system/cpu/cpu0", "online")) {
		unit_skip("%s", unasked);
	} else {
		CU_ASSERT_EQUAL(heard(fd, WATCH_CPUS), 1);
		CU_ASSERT_TRUE(provoke("system/cpu/cpu0", "add"));
		CU_ASSERT_EQUAL(heard(fd, WATCH_CPUS), 1);
		CU_ASSERT_TRUE(provoke("system/cpu/cpu0", "change"));
		CU_ASSERT_EQUAL(heard(fd, WATCH_CPUS), 0);
	}
	close(fd);
}

/* Nothing wakes the watch for what only looks like a device. */
static void test_filter(void)
{
	enum watch_cause cause;
	int fd = hear();

	if (fd < 0)
		return;
	(void)heard(fd, WATCH_CPUS);
	if (!watch_uevent_may_come(NULL) || !provoke("virtual/mem/null", "change")) {
		unit_skip("%s", unasked);
	} else {
		CU_ASSERT_EQUAL(watch_uevent_receive(fd, &cause), -EAGAIN);
		CU_ASSERT_TRUE(provoke("system/cpu/cpu0", "change")); /* passes, and is none of ours */
		CU_ASSERT_EQUAL(watch_uevent_receive(fd, &cause), 1);
	}
	close(fd);
}

static void test_user_namespaces(void)
{
	const char *root = new_root();

	CU_ASSERT_TRUE(watch_uevent_may_come(root));
	put_file(root, "/proc/self/uid_map", "         0          0 4294967295\n");
	CU_ASSERT_TRUE(watch_uevent_may_come(root));
	put_file(root, "/proc/self/uid_map", "         0     100000      65536\n");
	CU_ASSERT_FALSE(watch_uevent_may_come(root));
	put_file(root, "/proc/self/uid_map", "0 1000 1\n1 100000 65536\n");
	CU_ASSERT_FALSE(watch_uevent_may_come(root));
}

static const struct unit_test tests[] = {
	{"texts", test_texts},
	{"hostile texts", test_hostile_texts},
	{"others than the kernel are not believed", test_others_are_not_believed},
	{"the kernel is believed", test_kernel_is_believed},
	{"virtual devices wake nobody", test_filter},
	{"user namespaces hear nothing", test_user_namespaces},
};

UNIT_MAIN("watch_uevent", tests)

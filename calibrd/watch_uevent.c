/*
 * The kernel's own uevents, by netlink. Not sd-device's monitor: it listens to what udevd passes on, which is nothing
 * in containers and in an initramfs, and needs /run/udev. The kernel sends its messages to every network namespace that
 * the initial user namespace owns (Linux: lib/kobject_uevent.c), so PrivateNetwork= is no obstacle.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calibrd/topology_parts.h"
#include "calibrd/watch_parts.h"

enum {
	KERNEL_GROUP = 1,     /* 2 is udevd's */
	MESSAGE_BYTES = 8192, /* variables are 2048 bytes at most, and a path goes before them */
};

/* --- what a message says ----------------------------------------------------------------------------------------- */

/* The value if the field is KEY=VALUE. */
static const char *value_of(const char *field, const char *key)
{
	size_t len = strlen(key);

	return strncmp(field, key, len) == 0 && field[len] == '=' ? field + len + 1 : NULL;
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

static bool judge(const char *action, const char *subsystem, enum watch_cause *cause)
{
	static const char *const of_cpus[] = {"online", "offline", "add", "remove", NULL};
	static const char *const of_power[] = {"change", "add", "remove", NULL};

	if (action == NULL || subsystem == NULL)
		return false;
	if (strcmp(subsystem, "cpu") == 0 && is_one_of(action, of_cpus)) {
		*cause = WATCH_CPUS;
		return true;
	}
	if (strcmp(subsystem, "power_supply") == 0 && is_one_of(action, of_power)) {
		*cause = WATCH_POWER;
		return true;
	}
	return false;
}

bool watch_uevent_parse(const char *text, size_t len, enum watch_cause *cause)
{
	const char *action = NULL, *subsystem = NULL, *at, *end = text + len;

	if (len == 0 || text[len - 1] != '\0') /* so that every field ends inside */
		return false;
	at = strchr(text, '@');
	if (at == NULL || at == text || at[1] != '/')
		return false;
	for (const char *field = text + strlen(text) + 1; field < end; field += strlen(field) + 1) {
		const char *a = value_of(field, "ACTION"), *s = value_of(field, "SUBSYSTEM");

		if ((a != NULL && action != NULL) || (s != NULL && subsystem != NULL))
			return false; /* the kernel says each once */
		action = a != NULL ? a : action;
		subsystem = s != NULL ? s : subsystem;
	}
	return judge(action, subsystem, cause);
}

/* --- the socket -------------------------------------------------------------------------------------------------- */

/* Words of a message as the filter loads them. */
#define WORD(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

/*
 * Where containers come and go so do virtual network devices, queues, slabs: hundreds of messages that would wake the
 * daemon for nothing. Let through is "online@", "offline@", and "add@", "remove@", "change@" of /devices/... but not of
 * /devices/virtual/..., unless that is a power supply. A load beyond the message drops it.
 */
static void attach_filter(int fd)
{
	enum { WITH_ADD = 6, WITH_PATH = 8, COMPARE = 9, DROP = 15, TAKE = 16 };
#define JUMP(here, k, yes, no)                                                                                         \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), (uint8_t)((yes) - (here)-1), (uint8_t)((no) - (here)-1))
	static const struct sock_filter program[] = {
		[0] = BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		[1] = JUMP(1, 'o', TAKE, 2),
		[2] = JUMP(2, 'a', WITH_ADD, 3),
		[3] = JUMP(3, 'r', WITH_PATH, 4),
		[4] = JUMP(4, 'c', WITH_PATH, 5),
		[5] = BPF_STMT(BPF_RET | BPF_K, 0),
		[WITH_ADD] = BPF_STMT(BPF_LDX | BPF_IMM, sizeof("add@") - 1),
		[7] = BPF_STMT(BPF_JMP | BPF_JA, COMPARE - 8),
		[WITH_PATH] = BPF_STMT(BPF_LDX | BPF_IMM, sizeof("remove@") - 1), /* as long as "change@" */
		[COMPARE] = BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0),
		[10] = JUMP(10, WORD('/', 'd', 'e', 'v'), 11, DROP),
		[11] = BPF_STMT(BPF_LD | BPF_W | BPF_IND, sizeof("/devices") - 1),
		[12] = JUMP(12, WORD('/', 'v', 'i', 'r'), 13, TAKE),
		[13] = BPF_STMT(BPF_LD | BPF_W | BPF_IND, sizeof("/devices/virtual") - 1),
		[14] = JUMP(14, WORD('/', 'p', 'o', 'w'), TAKE, DROP),
		[DROP] = BPF_STMT(BPF_RET | BPF_K, 0),
		[TAKE] = BPF_STMT(BPF_RET | BPF_K, MESSAGE_BYTES),
	};
#undef JUMP
	const struct sock_fprog filter = {.len = sizeof(program) / sizeof(program[0]),
	                                  .filter = (struct sock_filter *)(uintptr_t)program};

	/* Without it all is the same but for the wake-ups. */
	(void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
}

int watch_uevent_open(void)
{
	const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP};
	int on = 1, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

	if (fd < 0)
		return -errno;
	attach_filter(fd); /* before the first message can come */
	if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

/* The kernel's port is 0, and what it sends bears root's name. Others with CAP_NET_ADMIN may send here, from ports of
 * their own. */
static bool is_kernel(const struct msghdr *message, const struct sockaddr_nl *from)
{
	const struct cmsghdr *header = CMSG_FIRSTHDR(message);
	struct ucred sender;

	if (message->msg_namelen != sizeof(*from) || from->nl_family != AF_NETLINK || from->nl_pid != 0 ||
	    from->nl_groups != KERNEL_GROUP)
		return false;
	if (header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_CREDENTIALS ||
	    header->cmsg_len != CMSG_LEN(sizeof(sender)))
		return false;
	memcpy(&sender, CMSG_DATA(header), sizeof(sender));
	return sender.uid == 0;
}

int watch_uevent_receive(int fd, enum watch_cause *cause)
{
	char text[MESSAGE_BYTES];
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred))];
	struct sockaddr_nl from = {0};
	struct iovec part = {.iov_base = text, .iov_len = sizeof(text)};
	struct msghdr message = {.msg_name = &from,
	                         .msg_namelen = sizeof(from),
	                         .msg_iov = &part,
	                         .msg_iovlen = 1,
	                         .msg_control = control,
	                         .msg_controllen = sizeof(control)};
	ssize_t len = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (len < 0)
		return errno == EINTR ? 1 : -errno;
	if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || !is_kernel(&message, &from))
		return 1;
	return watch_uevent_parse(text, (size_t)len, cause) ? 0 : 1;
}

/* "0 0 4294967295" is the map of the initial one. */
bool watch_uevent_may_come(const char *root)
{
	char text[64];
	unsigned inside, outside, count;

	if (topology_text(root, text, sizeof(text), "/proc/self/uid_map") != 0)
		return true; /* not told: hope */
	return sscanf(text, "%u %u %u", &inside, &outside, &count) != 3 ||
	       (inside == 0 && outside == 0 && count == UINT32_MAX);
}

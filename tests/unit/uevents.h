/* Uevents of this very kernel, for tests of who listens to them. */
#ifndef TESTS_UEVENTS_H
#define TESTS_UEVENTS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Asks the kernel for a message about a device as if that had happened (Documentation/ABI/testing/sysfs-uevent);
 * nothing happens to it. False: it can't be had here. */
static inline bool provoke(const char *device, const char *action)
{
	char path[256];
	ssize_t written;
	int fd;

	snprintf(path, sizeof(path), "/sys/devices/%s/uevent", device);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	written = write(fd, action, strlen(action));
	close(fd);
	return written > 0;
}

static const char unasked[] = "the kernel can't be asked for a uevent: needs root, /sys to write, no user namespace";

#endif

#include "libpolicy/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ESTALE of a network file system must not be taken for "made for another CPU". */
static int own(int code)
{
	return code == -ESTALE ? -EIO : code;
}

/* Asked first: that a file is gone must be seen where no one may open any, and other things are not even opened, since
 * that alone may do harm: a watchdog starts, a tape rewinds, a pipe's writer wakes. What takes the file's place in
 * between is found after opening, and must neither block nor become the program's own terminal. */
static int open_regular(const char *path, struct pc_why *why)
{
	struct stat status;

	if (stat(path, &status) < 0)
		return pc_why(why, own(-errno), "%m");
	if (!S_ISREG(status.st_mode))
		return pc_why(why, -EBADMSG, "not a regular file");
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return pc_why(why, own(-errno), "%m");
	if (fstat(fd, &status) < 0) {
		int r = pc_why(why, own(-errno), "%m");
		close(fd);
		return r;
	}
	if (!S_ISREG(status.st_mode)) {
		close(fd);
		return pc_why(why, -EBADMSG, "not a regular file");
	}
	return fd;
}

/* Up to `room` bytes; fewer only at the end of the file. */
static ssize_t read_fully(int fd, char *text, size_t room)
{
	size_t len = 0;

	while (len < room) {
		ssize_t n = read(fd, text + len, room - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

int pc_file_read(const char *path, size_t most, char **text, size_t *len, struct pc_why *why)
{
	int fd = open_regular(path, why);

	if (fd < 0)
		return fd;
	char *bytes = malloc(most + 1); /* the byte beyond tells a full file from a larger one */
	if (bytes == NULL) {
		close(fd);
		return pc_why(why, -ENOMEM, "out of memory");
	}
	ssize_t n = read_fully(fd, bytes, most + 1);
	close(fd);
	if (n < 0 || (size_t)n > most) {
		free(bytes);
		if (n < 0) {
			errno = (int)-n;
			return pc_why(why, own((int)n), "%m");
		}
		return pc_why(why, -EFBIG, "larger than %zu bytes", most);
	}
	*text = bytes;
	*len = (size_t)n;
	return 0;
}

/* To be told apart, no more: it wraps for the years after 2262, which a file may claim to be from. */
static uint64_t nanoseconds(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
}

struct pc_identity pc_file_identity(const char *path)
{
	struct stat status;

	if (stat(path, &status) < 0)
		return (struct pc_identity){.error = errno};
	return (struct pc_identity){.device = status.st_dev,
	                            .inode = status.st_ino,
	                            .size = (uint64_t)status.st_size,
	                            .changed_ns = nanoseconds(&status.st_ctim),
	                            .modified_ns = nanoseconds(&status.st_mtim)};
}

bool pc_identity_same(const struct pc_identity *a, const struct pc_identity *b)
{
	return a->error == b->error && a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->changed_ns == b->changed_ns && a->modified_ns == b->modified_ns;
}

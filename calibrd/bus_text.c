/* Texts from and for others: UTF-8 alone, of bounded length; see bus_parts.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calibrd/bus_parts.h"
#include "libpolicy/document.h"

/* --- out --------------------------------------------------------------------------------------------------------- */

/* libdbus and sd-bus also refuse surrogates and code points that never will be characters. */
static bool is_character(uint32_t code, unsigned bytes)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

	return code >= least[bytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) &&
	       (code < 0xfdd0 || code > 0xfdef) && (code & 0xfffe) != 0xfffe;
}

/* Bytes of the character that begins there; 0: none does. */
static unsigned character(const unsigned char *at)
{
	unsigned bytes = at[0] < 0x80   ? 1
	                 : at[0] < 0xc0 ? 0
	                 : at[0] < 0xe0 ? 2
	                 : at[0] < 0xf0 ? 3
	                 : at[0] < 0xf8 ? 4
	                                : 0;
	uint32_t code;

	if (bytes < 2)
		return bytes;
	code = at[0] & (0x7fu >> bytes);
	for (unsigned i = 1; i < bytes; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (at[i] & 0x3f);
	}
	return is_character(code, bytes) ? bytes : 0;
}

void bus_text(char *out, size_t size, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t used = 0;

	while (*at != '\0') {
		unsigned bytes = character(at), copied = bytes > 0 ? bytes : 1;

		if (used + copied >= size)
			break;
		if (bytes > 0)
			memcpy(out + used, at, bytes);
		else
			out[used] = '?';
		used += copied;
		at += copied;
	}
	out[used] = '\0';
}

/* --- in ---------------------------------------------------------------------------------------------------------- */

static const char *kind(mode_t mode)
{
	return S_ISFIFO(mode)   ? "a pipe"
	       : S_ISSOCK(mode) ? "a socket"
	       : S_ISDIR(mode)  ? "a directory"
	       : S_ISCHR(mode)  ? "a character device"
	       : S_ISBLK(mode)  ? "a block device"
	       : S_ISLNK(mode)  ? "a symbolic link"
	                        : "neither"; /* anonymous inodes: eventfd, epoll and others */
}

/* Some files of /proc and tracefs call themselves regular and make readers wait; all of those say 0 bytes. */
static int check(int fd, size_t *size, struct pc_why *why)
{
	struct stat status;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fstat(fd, &status) < 0)
		return pc_why(why, -errno, "the policy's descriptor: %s", strerror(errno));
	if (!S_ISREG(status.st_mode))
		return pc_why(why, -EINVAL, "a policy is read from a regular file or a memfd; this descriptor is %s",
		              kind(status.st_mode));
	if ((flags & O_PATH) != 0 || (flags & O_ACCMODE) == O_WRONLY)
		return pc_why(why, -EINVAL, "the policy's descriptor is not open for reading");
	if (status.st_size == 0)
		return pc_why(why, -EINVAL, "the policy's file is empty");
	if (status.st_size > PC_DOCUMENT_MAX_BYTES)
		return pc_why(why, -EFBIG, "a policy of %lld bytes, %d are the most", (long long)status.st_size,
		              PC_DOCUMENT_MAX_BYTES);
	*size = (size_t)status.st_size;
	return 0;
}

int bus_read_policy(int fd, char **text, size_t *len, struct pc_why *why)
{
	size_t size = 0, done = 0;
	ssize_t n = 1;
	int r = check(fd, &size, why);

	if (r < 0)
		return r;
	char *buffer = malloc(size + 1);
	if (buffer == NULL)
		return pc_why(why, -ENOMEM, "no memory to read a policy");
	while (done < size && n != 0) {
		n = pread(fd, buffer + done, size - done, (off_t)done);
		if (n < 0 && errno != EINTR) {
			r = pc_why(why, -errno, "the policy's file: %s", strerror(errno));
			free(buffer);
			return r;
		}
		done += n > 0 ? (size_t)n : 0;
	}
	buffer[done] = '\0';
	*text = buffer;
	*len = done;
	return 0;
}

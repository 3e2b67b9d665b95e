/* Temporary, fsync, rename, fsync of the folder; see publish_file.h. */
#include "calibrd/publish_file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 16, COPIES_MAX = 1000, SUFFIX = 6 /* of mkostemp */ };

struct temporary {
	int fd;
	char path[PUBLISH_PATH];
};

static int failed(struct pc_why *why, const char *path)
{
	int code = errno;

	return pc_why(why, -code, "%s: %s%s", path, strerror(code),
	              code == ENOSPC || code == EDQUOT ? ": make room there" : "");
}

static int too_long(struct pc_why *why, const char *path)
{
	return pc_why(why, -ENAMETOOLONG, "%.64s...: the name is too long", path);
}

/* --- names ------------------------------------------------------------------------------------------------------- */

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

/* The path's folder with a slash behind it, or nothing: ready for a name. */
static int folder_length(const char *path)
{
	return (int)(name_of(path) - path);
}

static void folder_of(char out[PUBLISH_PATH], const char *path)
{
	int len = folder_length(path);

	snprintf(out, PUBLISH_PATH, "%.*s", len > 1 ? len - 1 : 1, len == 0 ? "." : path);
}

int publish_file_resolve(char out[PUBLISH_PATH], const char *path, struct pc_why *why)
{
	char link[PUBLISH_PATH], next[2 * PUBLISH_PATH];

	if (strlen(path) >= PUBLISH_PATH)
		return too_long(why, path);
	strcpy(out, path);
	for (unsigned i = 0; i < LINKS_MAX; i++) {
		ssize_t len = readlink(out, link, sizeof(link) - 1);

		if (len < 0)
			return 0; /* no link, or nothing there: whoever opens it will find out more */
		link[len] = '\0';
		if ((size_t)len == sizeof(link) - 1) /* perhaps cut off */
			return too_long(why, link);
		if (link[0] == '/')
			strcpy(next, link);
		else
			snprintf(next, sizeof(next), "%.*s%s", folder_length(out), out, link);
		if (strlen(next) >= PUBLISH_PATH)
			return too_long(why, next);
		memcpy(out, next, strlen(next) + 1);
	}
	return pc_why(why, -ELOOP, "%s: %s", path, strerror(ELOOP));
}

bool publish_file_is(const char *a, const char *b)
{
	char folder_a[PUBLISH_PATH], folder_b[PUBLISH_PATH];
	struct stat status_a, status_b;

	if (strcmp(name_of(a), name_of(b)) != 0)
		return false;
	folder_of(folder_a, a);
	folder_of(folder_b, b);
	return stat(folder_a, &status_a) == 0 && stat(folder_b, &status_b) == 0 && status_a.st_dev == status_b.st_dev &&
	       status_a.st_ino == status_b.st_ino;
}

/* --- folders ----------------------------------------------------------------------------------------------------- */

int publish_file_make_folder(const char *path, struct pc_why *why)
{
	char folder[PUBLISH_PATH];

	folder_of(folder, path);
	if (mkdir(folder, 0755) < 0)
		return errno == EEXIST ? 0 : failed(why, folder);
	return chmod(folder, 0755) < 0 ? failed(why, folder) : 0; /* whatever the umask */
}

static int sync_folder(const char *path, struct pc_why *why)
{
	char folder[PUBLISH_PATH];

	folder_of(folder, path);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return failed(why, folder);
	/* EINVAL: a file system on which folders can't be synced. */
	int r = fsync(fd) < 0 && errno != EINVAL ? failed(why, folder) : 0;
	close(fd);
	return r;
}

static bool is_folder_fault(int code)
{
	return code == EROFS || code == EACCES || code == EPERM || code == ENOENT || code == ENOTDIR;
}

/* --- temporaries ------------------------------------------------------------------------------------------------- */

/* ".NAME.XXXXXX" */
static bool is_temporary(const char *entry, const char *name)
{
	size_t len = strlen(name);

	if (entry[0] != '.' || strncmp(entry + 1, name, len) != 0 || entry[1 + len] != '.' ||
	    strlen(entry) != len + 2 + SUFFIX)
		return false;
	for (const char *c = entry + len + 2; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c))
			return false;
	return true;
}

/* A temporary is locked while its writer lives: the kernel drops the lock of a killed one. */
static void remove_if_stale(int folder, const char *entry)
{
	int fd = openat(folder, entry, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat status;

	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0)
		unlinkat(folder, entry, 0);
	close(fd);
}

void publish_file_clean(const char *path)
{
	char folder[PUBLISH_PATH];

	folder_of(folder, path);
	DIR *dir = opendir(folder);
	if (dir == NULL)
		return;
	for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
		if (is_temporary(entry->d_name, name_of(path)))
			remove_if_stale(dirfd(dir), entry->d_name);
	closedir(dir);
}

static void temporary_drop(struct temporary *temporary)
{
	if (temporary->fd < 0)
		return;
	unlink(temporary->path);
	close(temporary->fd);
	temporary->fd = -1;
}

static int temporary_open(struct temporary *temporary, const char *path, bool *folder, struct pc_why *why)
{
	char name[2 * PUBLISH_PATH];
	int len = snprintf(name, sizeof(name), "%.*s.%s.XXXXXX", folder_length(path), path, name_of(path));

	temporary->fd = -1;
	if (len >= PUBLISH_PATH)
		return too_long(why, path);
	memcpy(temporary->path, name, (size_t)len + 1);
	temporary->fd = mkostemp(temporary->path, O_CLOEXEC);
	if (temporary->fd < 0) {
		*folder = is_folder_fault(errno);
		folder_of(name, path);
		return failed(why, name);
	}
	if (flock(temporary->fd, LOCK_EX | LOCK_NB) == 0 && fchmod(temporary->fd, 0644) == 0)
		return 0;
	int r = failed(why, temporary->path);
	temporary_drop(temporary);
	return r;
}

static int write_fully(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

static int not_renamed(const char *path, struct pc_why *why)
{
	if (errno == EBUSY)
		return pc_why(why, -EBUSY, "%s: a mount of its own can't be replaced: mount its folder instead", path);
	return failed(why, path);
}

/* Closes or drops the temporary in any case. */
static int temporary_place(struct temporary *temporary, const char *path, bool *placed, struct pc_why *why)
{
	int r = 0;

	if (fsync(temporary->fd) < 0)
		r = failed(why, temporary->path);
	else if (rename(temporary->path, path) < 0)
		r = not_renamed(path, why);
	if (r < 0) {
		temporary_drop(temporary);
		return r;
	}
	*placed = true;
	close(temporary->fd);
	temporary->fd = -1;
	return sync_folder(path, why);
}

int publish_file_replace(const char *path, const char *text, size_t len, bool *folder, bool *placed, struct pc_why *why)
{
	struct temporary temporary;
	int r = temporary_open(&temporary, path, folder, why);

	if (r < 0)
		return r;
	if (write_fully(temporary.fd, text, len) < 0) {
		r = failed(why, temporary.path);
		temporary_drop(&temporary);
		return r;
	}
	return temporary_place(&temporary, path, placed, why);
}

/* --- keeping ----------------------------------------------------------------------------------------------------- */

static ssize_t read_block(int fd, char *block, size_t size)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = read(fd, block + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

/* False also where one can't be read: then it isn't known to be the same. */
static bool same_contents(int a, int b)
{
	char one[4096], two[4096];
	ssize_t n, m;

	do {
		n = read_block(a, one, sizeof(one));
		m = read_block(b, two, sizeof(two));
		if (n < 0 || n != m || memcmp(one, two, (size_t)n) != 0)
			return false;
	} while (n > 0);
	return true;
}

/* A name that is free (1), or has the same contents already (0). */
static int choose_name(int source, const char *path, uint64_t generation, char kept[PUBLISH_PATH], struct pc_why *why)
{
	for (unsigned i = 1; i < COPIES_MAX; i++) {
		char number[24] = "";
		if (i > 1)
			snprintf(number, sizeof(number), "-%u", i);
		if (snprintf(kept, PUBLISH_PATH, "%s.edited-%" PRIu64 "%s", path, generation, number) >= PUBLISH_PATH)
			return too_long(why, path);

		int fd = open(kept, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0 && errno == ENOENT)
			return 1;
		bool same = fd >= 0 && same_contents(source, fd);
		if (fd >= 0)
			close(fd);
		if (lseek(source, 0, SEEK_SET) < 0)
			return failed(why, path);
		if (same)
			return 0;
	}
	return pc_why(why, -EEXIST, "%s: edited, and so it was %d times before", path, COPIES_MAX - 1);
}

/* Copied, not linked: a file of another owner may not be linked, and one being edited in place would go on changing. */
static int copy_to(int source, const char *path, const char *kept, bool *folder, struct pc_why *why)
{
	struct temporary temporary;
	char block[4096];
	bool placed;
	ssize_t n;
	int r = temporary_open(&temporary, path, folder, why);

	if (r < 0)
		return r;
	while ((n = read_block(source, block, sizeof(block))) > 0 && write_fully(temporary.fd, block, (size_t)n) == 0)
		;
	if (n == 0)
		return temporary_place(&temporary, kept, &placed, why);
	r = failed(why, temporary.path);
	temporary_drop(&temporary);
	return r;
}

int publish_file_keep(const char *path, uint64_t generation, char kept[PUBLISH_PATH], bool *folder, struct pc_why *why)
{
	int source = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (source < 0)
		return failed(why, path);
	int r = choose_name(source, path, generation, kept, why);
	if (r > 0)
		r = copy_to(source, path, kept, folder, why);
	close(source);
	return r;
}

int publish_file_remove(const char *path, struct pc_why *why)
{
	if (unlink(path) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : not_renamed(path, why);
	return sync_folder(path, why);
}

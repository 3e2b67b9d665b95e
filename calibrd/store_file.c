/* The database as a file; see store_file.h. */
#include "calibrd/store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calibrd/store_migrate.h"

static int failed(struct pc_why *why, const char *path)
{
	int code = errno;
	return pc_why(why, -code, "%s: %s", path, strerror(code));
}

/* The folder part, "." if there is none, and the name behind it. */
static const char *split(char folder[PATH_MAX], const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash) {
		strcpy(folder, ".");
		return path;
	}
	snprintf(folder, PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	return slash + 1;
}

int store_file_locate(char out[STORE_PATH], const char *path, int make, struct pc_why *why)
{
	char folder[PATH_MAX], real[PATH_MAX];
	if (strlen(path) >= PATH_MAX)
		return pc_why(why, -ENAMETOOLONG, "%.64s...: the name is too long", path);
	const char *name = split(folder, path), *resolved = realpath(path, real);
	if (!*name)
		return pc_why(why, -EISDIR, "%s: a folder, where the database is to be a file", path);
	if (!resolved && errno != ENOENT)
		return failed(why, path);
	if (!resolved && make && mkdir(folder, 0755) < 0 && errno != EEXIST)
		return failed(why, folder);
	if (!resolved && !realpath(folder, real))
		return failed(why, folder);
	int len = snprintf(out, STORE_PATH, resolved ? "%s" : "%s/%s", real, name);
	if (len < 0 || len >= STORE_PATH)
		return pc_why(why, -ENAMETOOLONG, "%.64s...: the name is longer than SQLite allows", path);
	return 0;
}

int store_file_writable(const char *path, struct pc_why *why)
{
	char folder[PATH_MAX];
	split(folder, path);
	if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) < 0)
		return failed(why, folder);
	if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) < 0 && errno != ENOENT)
		return failed(why, path);
	return 0;
}

/* A calibration of much effort, its journal, and what was there before it: nearly full is full. */
static const off_t room_bytes = 4 << 20;

/* Asked for, not read from statfs(): quotas count, and blocks that are kept for root. */
int store_file_room(const char *path, struct pc_why *why)
{
	char folder[PATH_MAX];
	split(folder, path);
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0) /* not every file system has files without a name: then writing will tell */
		return errno == ENOSPC || errno == EDQUOT ? failed(why, folder) : 0;
	errno = posix_fallocate(fd, 0, room_bytes);
	int r = errno == ENOSPC || errno == EDQUOT ? failed(why, folder) : 0;
	close(fd);
	return r;
}

static int busy(int fd, const char *path, struct pc_why *why)
{
	char text[32] = "";
	ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
	long holder = len > 0 ? strtol(text, NULL, 10) : 0;
	if (holder > 0)
		return pc_why(why, -EBUSY, "%s: process %ld is writing it", path, holder);
	return pc_why(why, -EBUSY, "%s: another process is writing it", path);
}

/* The number is for people: who holds the lock is the kernel's to know. Written over, so that a full disk has room. */
static int sign(int fd)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
	if (pwrite(fd, text, (size_t)len, 0) != len)
		return -1;
	return ftruncate(fd, len);
}

static bool has_beside(const char *path, const char *end)
{
	char name[STORE_PATH + sizeof("-journal")];
	snprintf(name, sizeof(name), "%s%s", path, end);
	return access(name, F_OK) == 0;
}

bool store_file_has_lock(const char *path)
{
	return has_beside(path, ".lock");
}

bool store_file_has_journal(const char *path)
{
	return has_beside(path, "-journal");
}

int store_file_lock(const char *path, struct pc_why *why)
{
	char name[STORE_PATH + sizeof(".lock")];
	snprintf(name, sizeof(name), "%s.lock", path);
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644), r;
	if (fd < 0)
		return failed(why, name);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		r = errno == EWOULDBLOCK ? busy(fd, path, why) : failed(why, name);
	else
		r = sign(fd) < 0 ? failed(why, name) : 0;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

/* Bytes 0-15 magic, 44 schema format (0 until the first table is made), 60 user_version, 68 application_id. */
struct header {
	unsigned char bytes[100];
};

static uint32_t big_endian(const struct header *header, size_t at)
{
	const unsigned char *b = &header->bytes[at];
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Bytes read, 0 for an absent file. */
static int read_header(const char *path, struct header *header, struct pc_why *why)
{
	struct stat info;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? 0 : failed(why, path);
	ssize_t len = fstat(fd, &info);
	if (len == 0 && !S_ISREG(info.st_mode)) {
		close(fd);
		return pc_why(why, S_ISDIR(info.st_mode) ? -EISDIR : -EMEDIUMTYPE, "%s: not a file", path);
	}
	if (len == 0)
		len = pread(fd, header->bytes, sizeof(header->bytes), 0);
	int r = len < 0 ? failed(why, path) : (int)len;
	close(fd);
	return r;
}

int store_file_identify(const char *path, unsigned newest, unsigned *schema, struct pc_why *why)
{
	struct header header = {{0}};
	int len = read_header(path, &header, why);
	if (len < 0)
		return len;
	if (len == 0)
		return 1;
	if ((size_t)len < sizeof(header) || memcmp(header.bytes, "SQLite format 3", 16))
		return 2;
	uint32_t application = big_endian(&header, 68), version = big_endian(&header, 60);
	if (application == 0 && version == 0 && big_endian(&header, 44) == 0)
		return 1;
	if (application != STORE_APPLICATION_ID)
		return pc_why(why, -EMEDIUMTYPE,
		              "%s: a database of another program (application_id 0x%x), left as it is", path,
		              application);
	if (version > newest)
		return pc_why(why, -EPROTONOSUPPORT,
		              "%s: made by a newer version (schema %u; this one knows schemas up to %u), left as it is",
		              path, version, newest);
	*schema = version;
	return version == 0 ? 2 : 0;
}

int store_file_create(const char *path, struct pc_why *why)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return errno == EEXIST ? 0 : failed(why, path);
	/* calibctl reads it as any user: whatever the umask. */
	int r = fchmod(fd, 0644) < 0 ? failed(why, path) : 0;
	close(fd);
	return r;
}

static int sync_folder(const char *path, struct pc_why *why)
{
	char folder[PATH_MAX];
	split(folder, path);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return failed(why, folder);
	int r = fsync(fd) < 0 ? failed(why, folder) : 0;
	close(fd);
	return r;
}

/* The database first: a journal without one is thrown away by SQLite, a database without its journal may look sound. */
static const char *const parts[] = {"", "-journal", "-wal", "-shm"};

static int is_free(const char *path, unsigned number)
{
	char name[600];
	struct stat info;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		snprintf(name, sizeof(name), "%s.damaged-%u%s", path, number, parts[i]);
		if (lstat(name, &info) == 0 || errno != ENOENT)
			return 0;
	}
	return 1;
}

int store_file_set_aside(const char *path, char renamed[512], struct pc_why *why)
{
	unsigned number = 1;
	while (!is_free(path, number))
		if (++number > 9999)
			return pc_why(why, -EEXIST, "%s: damaged, and so are 9999 before it", path);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		char from[600], to[600];
		snprintf(from, sizeof(from), "%s%s", path, parts[i]);
		snprintf(to, sizeof(to), "%s.damaged-%u%s", path, number, parts[i]);
		if (rename(from, to) < 0 && errno != ENOENT)
			return failed(why, from);
	}
	snprintf(renamed, 512, "%s.damaged-%u", path, number);
	return sync_folder(path, why);
}

int store_file_remove(const char *path, struct pc_why *why)
{
	char name[STORE_PATH + sizeof("-journal")];
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		snprintf(name, sizeof(name), "%s%s", path, parts[i]);
		if (unlink(name) < 0 && errno != ENOENT)
			return failed(why, name);
	}
	return sync_folder(path, why);
}

/*
 * Two copies of libpolicy in one process, one of them of another version, whose policy may name a kernel that leaves a
 * mark: each serves itself, whichever is static, shared or loaded late.
 *
 * copies WHO OTHER LIBRARY: who is linked in and who is in LIBRARY, each `ours` or `other`. LIBRARY is libpolicy.so, or
 * with -DPLUGIN made from this file and an archive.
 */
#include <dlfcn.h>
#include <pageclear/policy.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 70000 };

/* What one copy can do. */
struct copy {
	void (*zero)(void *, size_t, unsigned);
	void (*zero_ranges)(const struct iovec *, size_t, unsigned);
	void (*policy_zero)(const struct pageclear_policy *, void *, size_t, unsigned);
	int (*status)(char *, size_t);
	int (*reload)(void);
	int (*open)(const struct pageclear_policy **, const char *);
	const struct pageclear_policy *(*close)(const struct pageclear_policy *);
};

#define OWN_COPY                                                                                                       \
	{                                                                                                              \
		pageclear_zero, pageclear_zero_ranges, pageclear_policy_zero, pageclear_status, pageclear_reload,      \
			pageclear_policy_open, pageclear_policy_close                                                  \
	}

void plugin_copy(struct copy *out);

#ifdef PLUGIN
void plugin_copy(struct copy *out)
{
	*out = (struct copy)OWN_COPY;
}
#else
static unsigned char bytes[SIZE];

static int wrong(const char *who, const char *what)
{
	fprintf(stderr, "%s: %s\n", who, what);
	return 1;
}

/* The other version's kernel clears all but one byte in the middle. */
static int is_marked(void)
{
	int marked = bytes[SIZE / 2] == 1;

	bytes[SIZE / 2] = 0;
	for (size_t i = 0; i < SIZE; i++)
		if (bytes[i] != 0)
			return -1;
	return marked;
}

static int check(const struct copy *copy, const char *who)
{
	int marks = strcmp(who, "other") == 0;
	char text[1600];
	const struct pageclear_policy *policy;
	struct iovec range = {bytes, SIZE};

	memset(bytes, 2, SIZE);
	copy->zero(bytes, SIZE, PAGECLEAR_HOT);
	if (is_marked() != marks)
		return wrong(who, "pageclear_zero is another's");
	memset(bytes, 2, SIZE);
	copy->zero_ranges(&range, 1, PAGECLEAR_HOT);
	if (is_marked() != marks)
		return wrong(who, "pageclear_zero_ranges is another's");
	memset(bytes, 2, SIZE);
	copy->policy_zero(NULL, bytes, SIZE, PAGECLEAR_HOT);
	if (is_marked() != marks)
		return wrong(who, "pageclear_policy_zero is another's");
	if (copy->status(text, sizeof(text)) != 0 || (strstr(text, "lacks: t_wrong") == NULL) != marks)
		return wrong(who, text);
	if (copy->open(&policy, NULL) != 0)
		return wrong(who, "pageclear_policy_open failed");
	memset(bytes, 2, SIZE);
	copy->policy_zero(policy, bytes, SIZE, PAGECLEAR_HOT);
	copy->close(policy);
	if (is_marked() != marks)
		return wrong(who, "an explicit policy is another's");
	return copy->reload() == 0 ? 0 : wrong(who, "pageclear_reload found something");
}

static void *need(void *handle, const char *name)
{
	void *found = dlsym(handle, name);

	if (found == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		_exit(2);
	}
	return found;
}

static void find_copy(struct copy *out, void *handle)
{
	void (*plugin)(struct copy *);

	*(void **)&plugin = dlsym(handle, "plugin_copy");
	if (plugin != NULL) {
		plugin(out);
		return;
	}
	*(void **)&out->zero = need(handle, "pageclear_zero");
	*(void **)&out->zero_ranges = need(handle, "pageclear_zero_ranges");
	*(void **)&out->policy_zero = need(handle, "pageclear_policy_zero");
	*(void **)&out->status = need(handle, "pageclear_status");
	*(void **)&out->reload = need(handle, "pageclear_reload");
	*(void **)&out->open = need(handle, "pageclear_policy_open");
	*(void **)&out->close = need(handle, "pageclear_policy_close");
}

int main(int argc, char **argv)
{
	const struct copy own = OWN_COPY;
	struct copy loaded;
	void *handle;
	int r;

	if (argc != 4)
		return wrong("usage", "copies WHO OTHER LIBRARY");
	r = check(&own, argv[1]);
	handle = dlopen(argv[3], RTLD_NOW | RTLD_GLOBAL);
	if (handle == NULL)
		return wrong(argv[3], dlerror());
	find_copy(&loaded, handle);
	if (loaded.zero == own.zero || loaded.close == own.close)
		return wrong(argv[3], "is the copy that is there already");
	for (int i = 0; i < 2 && r == 0; i++)
		r = check(&loaded, argv[2]) || check(&own, argv[1]);
	if (dlclose(handle) != 0 || r != 0 || check(&own, argv[1]) != 0)
		return 1;
	puts("done");
	return 0;
}
#endif
